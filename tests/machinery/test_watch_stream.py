"""What a watch delivers of the events that the fault `merge` has withheld."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nominee.machinery.api.pb import core
from nominee.machinery.client.calls.watch_stream import MergedEvents, WatchEvent


def merged(events: Sequence[str]) -> list[str]:
    """Return the merged events, each written as `TYPE name`; its place in the list is its revision."""
    found = MergedEvents[core.ConfigMap]()
    for revision, text in enumerate(events):
        kind, name = text.split()
        obj = core.ConfigMap()
        obj.metadata.name = name
        found.add([WatchEvent(kind, obj, revision)])
    return [f"{each.type} {each.object.metadata.name} {each.revision}" for each in found.events()]


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        (["MODIFIED a", "MODIFIED b", "MODIFIED a"], ["MODIFIED b 1", "MODIFIED a 2"]),
        (["MODIFIED a", "MODIFIED a", "DELETED a"], ["MODIFIED a 1", "DELETED a 2"]),
        (["MODIFIED a", "MODIFIED b", "DELETED a"], ["MODIFIED a 0", "MODIFIED b 1", "DELETED a 2"]),
        (["DELETED a"], ["DELETED a 0"]),
        (["ADDED a", "MODIFIED a", "DELETED a"], ["DELETED a 2"]),
        (["ADDED a", "DELETED a", "ADDED a", "DELETED a"], ["DELETED a 3"]),
        (["DELETED a", "ADDED a"], ["ADDED a 1"]),
        (["DELETED a", "ADDED a", "MODIFIED a", "DELETED a"], ["MODIFIED a 2", "DELETED a 3"]),
    ],
    ids=[
        "changed",
        "changed and deleted",
        "in the order of revisions",
        "deleted",
        "came and went",
        "came and went twice",
        "created again",
        "created again and deleted",
    ],
)
def test_merged_events(events: list[str], wanted: list[str]) -> None:
    assert merged(events) == wanted
