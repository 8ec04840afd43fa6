"""The events about nodes that the controller sees for the first time, or no longer. Pure.

Source: kube-controller-manager 1.36, pkg/controller/nodelifecycle (RegisteredNode, RemovingNode).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nominee.controllers.planned_events import PlannedEvent


class Registration(NamedTuple):
    """An event about a node, which may be deleted already."""

    uid: str
    name: str
    event: PlannedEvent


def registrations(before: Mapping[str, str], present: Mapping[str, str]) -> Iterator[Registration]:
    """Yield the events for new nodes, then those for deleted ones; both mappings are from uid to name."""
    for uid, name in present.items():
        if uid not in before:
            note = f"Node {name} event: Registered Node {name} in Controller"
            yield Registration(uid, name, PlannedEvent("RegisteredNode", note))
    for uid, name in before.items():
        if uid not in present:
            note = f"Node {name} event: Removing Node {name} from Controller"
            yield Registration(uid, name, PlannedEvent("RemovingNode", note))
