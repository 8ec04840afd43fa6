"""Entries that a process need not have: of objects that are gone, or that a restart would free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from cachetools import LRUCache

from nominee.simulation import leftovers
from nominee.simulation.leftovers import Holdings

GONE = frozenset({"uid-1", "default/web-1"})
OTHERS = ["uid-2", "default/web-2", ("default", "web-2"), 3, None]


@dataclass(slots=True)
class Kept:
    """An object of the product with containers."""

    by_uid: Mapping[object, object] = field(default_factory=dict)
    waiting: object = None


Kept.__module__ = "nominee.kubelet.example"
BY_UID, WAITING = "Kept.by_uid", "Kept.waiting"


def holdings(*roots: object) -> Holdings:
    return leftovers.holdings("kubelet", roots, GONE)


@pytest.mark.parametrize(
    "entry", ["uid-1", "default/web-1", ("default", "web-1"), ("pods", "default", "web-1"), ("v", "uid-1")]
)
@pytest.mark.parametrize(
    "container", [set, list, frozenset, dict.fromkeys], ids=["set", "list", "frozen", "dict"]
)
def test_an_entry_is_named_after_an_object_that_is_gone(container: type, entry: object) -> None:
    found = holdings(Kept(waiting=container([entry, *OTHERS]))).of_gone
    assert found == {WAITING: 1}


def test_containers_within_a_value_count_for_its_attribute() -> None:
    found = holdings(Kept(by_uid={"uid-2": ({"a": {"uid-1"}},)})).of_gone
    assert found == {BY_UID: 1}


def test_copies_and_logs_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "_COPIES", ("nominee.kubelet.example.Kept.",))
    assert holdings({"a": Kept({"uid-1": 1})}) == Holdings(
        component="kubelet", entries=Counter(), of_gone=Counter()
    )


def test_entries_have_the_full_name_of_their_class() -> None:
    found = holdings(Kept({"a": 1, "b": Kept({"c": 2})})).entries
    assert found == {"nominee.kubelet.example.Kept.by_uid.": 3}


def test_a_cache_with_a_limit_is_not_counted() -> None:
    cache: LRUCache[str, int] = LRUCache(2)
    cache["a"] = 1
    assert holdings(Kept(waiting=cache)).entries == {}
