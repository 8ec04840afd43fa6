"""Assuming, confirming and forgetting pods; nodes that are known only by their pods."""

from __future__ import annotations

import pytest

from nominee.machinery.api.pb import core
from nominee.scheduler.framework.cluster.cache import Cache, CacheError
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.types import PodInfo
from tests.scheduler.builders import node, pod


def requested(cache: Cache, name: str) -> int:
    info = cache.get_node(name)
    assert info is not None
    return info.requested[0]


def bound(info: PodInfo, to: str) -> PodInfo:
    copy = core.Pod()
    copy.CopyFrom(info.pod)
    copy.spec.nodeName = to
    return PodInfo(copy)


def test_an_assumed_pod_counts_and_is_confirmed() -> None:
    cache = Cache()
    cache.put_node(node("n1"))
    cache.assume_pod(pod("a"), "n1")
    assert requested(cache, "n1") == 1000
    assert cache.is_assumed("uid-a")
    cache.add_pod(bound(pod("a"), "n1"))
    assert requested(cache, "n1") == 1000
    assert not cache.is_assumed("uid-a")


def test_a_forgotten_pod_does_not_count() -> None:
    cache = Cache()
    cache.put_node(node("n1"))
    cache.assume_pod(pod("a"), "n1")
    cache.forget_pod(pod("a"))
    cache.forget_pod(pod("a"))  # deleted meanwhile: nothing to do
    assert requested(cache, "n1") == 0


def test_a_pod_bound_elsewhere_than_assumed_moves() -> None:
    cache = Cache()
    cache.put_node(node("n1"))
    cache.put_node(node("n2"))
    cache.assume_pod(pod("a"), "n1")
    cache.add_pod(bound(pod("a"), "n2"))
    assert (requested(cache, "n1"), requested(cache, "n2")) == (0, 1000)
    assert cache.node_of("uid-a") == "n2"


def test_what_does_not_fit_is_rejected() -> None:
    cache = Cache()
    cache.put_node(node("n1"))
    cache.add_pod(pod("a", on="n1"))
    with pytest.raises(CacheError, match="already in added state"):
        cache.add_pod(pod("a", on="n1"))
    with pytest.raises(CacheError, match="can't be assumed"):
        cache.assume_pod(pod("a"), "n1")
    with pytest.raises(CacheError, match="cannot be forgotten"):
        cache.forget_pod(pod("a"))
    with pytest.raises(CacheError, match="cannot be updated"):
        cache.update_pod(pod("b", on="n1"))
    with pytest.raises(CacheError, match="cannot be removed"):
        cache.remove_pod(pod("b", on="n1"))
    with pytest.raises(CacheError, match="not found"):
        cache.remove_node("n2")


def test_a_node_of_which_only_pods_are_known_is_not_offered() -> None:
    cache, snapshot = Cache(), Snapshot()
    cache.add_pod(pod("a", on="ghost"))
    cache.update_snapshot(snapshot)
    assert len(snapshot) == 0
    assert cache.get_node("ghost") is None
    cache.put_node(node("ghost"))
    cache.update_snapshot(snapshot)
    assert requested(cache, "ghost") == 1000
    cache.remove_node("ghost")
    cache.update_snapshot(snapshot)
    assert len(snapshot) == 0
    cache.remove_pod(pod("a", on="ghost"))
    assert cache.pod_count == 0
    assert not cache._nodes


def test_a_snapshot_costs_by_what_changed() -> None:
    cache, snapshot = Cache(), Snapshot()
    for i in range(50):
        cache.put_node(node(f"n{i}"))
    cache.update_snapshot(snapshot)
    untouched = [snapshot.get(f"n{i}") for i in range(50) if i != 7]
    cache.assume_pod(pod("a"), "n7")
    cache.update_snapshot(snapshot)
    assert [snapshot.get(f"n{i}") for i in range(50) if i != 7] == untouched
    changed = snapshot.get("n7")
    assert changed is not None
    assert list(changed.pods) == ["uid-a"]


def test_an_image_is_counted_over_all_nodes() -> None:
    cache = Cache()
    for name in ("n1", "n2"):
        with_image = node(name)
        with_image.status.images.add(names=["web:1", "web@sha256:x"], sizeBytes=100)
        cache.put_node(with_image)
    first = cache.get_node("n1")
    assert first is not None
    assert first.images["web:1"].nodes == {"n1", "n2"}
    cache.remove_node("n2")
    assert first.images["web@sha256:x"].nodes == {"n1"}
