"""A recorded scenario (timelines.json) as data: what was done, and what became of each pod.

Compared are the ordered changes of `status.nominatedNodeName`, `spec.nodeName` and the PodScheduled condition
of each pod. Nodes that are alike (same spec and status, labels aside from the hostname) are equal: the real
scheduler picks among them at random, so they are named by the order in which the scenario first meets them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# (field, value): ("nominatedNodeName", "n1"), ("nodeName", ...), ("PodScheduled", "False/Unschedulable")
Change = tuple[str, str]
AT_ONCE_SECONDS = 0.1
"""Steps closer than this were done in one go: the recording's user waited for nothing between them."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing the user did: a created object, or an action in the recording's words."""

    at_seconds: float
    create: Mapping[str, Any] | None = None
    action: str = ""


@dataclass(slots=True)
class Recording:
    """A scenario with its expected changes; `before[i]` are the changes seen before step i, by pod.

    `at_once[i]`: step i came in one go with the one before it, and nothing was seen between them. What the
    earlier one leads to may come before or after it: a pod's backoff ends when it will.
    """

    name: str
    gates: Mapping[str, Mapping[str, bool]]
    steps: list[Step] = field(default_factory=list)
    before: list[dict[str, list[Change]]] = field(default_factory=list)
    changes: dict[str, list[Change]] = field(default_factory=dict)
    claims_selected: list[bool] = field(default_factory=list)
    at_once: list[bool] = field(default_factory=list)

    def add(self, step: Step, *, selected: bool) -> None:
        seen = {pod: list(changes) for pod, changes in self.changes.items()}
        self.at_once.append(
            bool(self.steps)
            and step.at_seconds - self.steps[-1].at_seconds < AT_ONCE_SECONDS
            and (seen, selected) == (self.before[-1], self.claims_selected[-1])
        )
        self.steps.append(step)
        self.before.append(seen)
        self.claims_selected.append(selected)


def pod_scheduled(conditions: Iterable[Mapping[str, Any]] | None) -> str:
    """`True`, `False/Unschedulable`, ... or "" without the condition."""
    for condition in conditions or ():
        if condition["type"] == "PodScheduled":
            reason = condition.get("reason", "")
            return f"{condition['status']}/{reason}" if reason else str(condition["status"])
    return ""


def _of_initial(initial: Mapping[str, Any]) -> list[Change]:
    found = [
        ("nominatedNodeName", initial.get("status", {}).get("nominatedNodeName") or ""),
        ("nodeName", initial.get("spec", {}).get("nodeName") or ""),
        ("PodScheduled", pod_scheduled(initial.get("status", {}).get("conditions"))),
    ]
    return [change for change in found if change[1]]


def _of_changes(changes: Mapping[str, Any], scheduled: str) -> list[Change]:
    found: list[Change] = []
    if ".status.nominatedNodeName" in changes:
        found.append(("nominatedNodeName", changes[".status.nominatedNodeName"][1] or ""))
    if ".spec.nodeName" in changes:
        found.append(("nodeName", changes[".spec.nodeName"][1] or ""))
    now = scheduled
    if ".status.conditions" in changes:
        now = pod_scheduled(changes[".status.conditions"][1])
    elif ".status.conditions[PodScheduled]" in changes:
        condition = changes[".status.conditions[PodScheduled]"][1]
        now = pod_scheduled([condition] if condition else None)
    if now != scheduled:
        found.append(("PodScheduled", now))
    return found


def _last_scheduled(changes: list[Change]) -> str:
    return next((value for name, value in reversed(changes) if name == "PodScheduled"), "")


def _read(data: Mapping[str, Any]) -> Recording:
    recording = Recording(data["scenario"], data["featureGates"])
    manifests = {f"{m['kind']}/{m['metadata']['name']}": m for m in data["manifests"]}
    selected = False
    for entry in data["steps"]:
        step = None
        if "action" in entry:
            step = Step(entry["t"], action=entry["action"])
        elif entry.get("request", {}).get("by") == "user":
            step = Step(entry["t"], create=manifests[entry["request"]["object"]])
        if step is not None:
            recording.add(step, selected=selected)
            continue
        kind, _, name = entry.get("object", "").partition("/")
        if kind == "persistentvolumeclaims" and "selected-node" in json.dumps(entry.get("changes")):
            selected = True
        if kind != "pods" or f"Pod/{name.partition('/')[2]}" not in manifests:
            continue
        changes = recording.changes.setdefault(name, [])
        if "initial" in entry:
            changes.extend(_of_initial(entry["initial"]))
        changes.extend(_of_changes(entry.get("changes") or {}, _last_scheduled(changes)))
    return recording


def load(path: Path) -> list[Recording]:
    """The recordings of a timelines file."""
    return [_read(data) for data in json.loads(path.read_text())]


# Nodes that differ and yet score the same: 4 and 8 cpu for a pod of 100m, in whole points.
_TIES = {"a_simple_bind": {"n1": "tie", "n2": "tie"}}


def node_shapes(recording: Recording) -> dict[str, str]:
    """A node's shape by its name: equal texts for nodes between which a scheduler may choose freely."""
    shapes = dict(_TIES.get(recording.name, {}))
    for step in recording.steps:
        if step.create is None or step.create["kind"] != "Node":
            continue
        node = json.loads(json.dumps(step.create))
        name = node["metadata"].pop("name")
        node["metadata"].get("labels", {}).pop("kubernetes.io/hostname", None)
        node.get("status", {}).pop("conditions", None)
        shapes.setdefault(name, json.dumps(node, sort_keys=True))
    return shapes


def normalised(changes: Mapping[str, list[Change]], shapes: Mapping[str, str]) -> dict[str, list[Change]]:
    """The same changes with equal nodes named by first appearance, pods in order of their names."""
    shape_numbers: dict[str, int] = {}
    names: dict[str, str] = {}
    met: dict[str, int] = {}

    def rename(node: str) -> str:
        if not node or node not in shapes:
            return node
        if node not in names:
            shape = shape_numbers.setdefault(shapes[node], len(shape_numbers))
            met[shapes[node]] = met.get(shapes[node], 0) + 1
            names[node] = f"shape{shape}-{met[shapes[node]]}"
        return names[node]

    # Shapes are numbered by the scenario's order of nodes, not by what a run met first.
    for shape in shapes.values():
        shape_numbers.setdefault(shape, len(shape_numbers))
    return {
        pod: [
            (name, rename(value) if name in ("nominatedNodeName", "nodeName") else value)
            for name, value in changes[pod]
        ]
        for pod in sorted(changes)
    }
