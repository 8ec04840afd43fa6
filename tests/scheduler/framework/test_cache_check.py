"""The cache's check of itself."""

from __future__ import annotations

from nominee.machinery.api.pb import core
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.cluster.cache_check import cache_problems
from nominee.scheduler.framework.types import PodInfo


def pod(name: str, cpu: str) -> PodInfo:
    """Return a pod on the node n1 that requests cpu."""
    found = core.Pod()
    found.metadata.name = found.metadata.uid = name
    found.spec.nodeName = "n1"
    found.spec.containers.add(name="c").resources.requests["cpu"].string = cpu
    return PodInfo(found)


def test_sums_that_are_those_of_the_pods_are_no_problem() -> None:
    cache = Cache()
    cache.put_node(core.Node(metadata={"name": "n1"}))
    for each in (pod("a", "1"), pod("b", "500m")):
        cache.add_pod(each)
    cache.update_pod(pod("a", "2"))
    cache.remove_pod(pod("b", "500m"))
    assert [*cache_problems(cache)] == []


def test_a_sum_that_differs_is_a_problem() -> None:
    cache = Cache()
    info = cache.put_node(core.Node(metadata={"name": "n1"}))
    cache.add_pod(pod("a", "1"))
    info.requested[0] += 250
    (problem,) = cache_problems(cache)
    assert problem.startswith("node n1 sums up to 1250, ")
    assert ", and its pods to 1000, " in problem


def test_a_pod_that_the_cache_has_elsewhere_is_a_problem() -> None:
    cache = Cache()
    cache.put_node(core.Node(metadata={"name": "n1"})).add_pod(pod("stray", "1"))
    assert [*cache_problems(cache)] == ["node n1 has pods of other nodes: stray"]
