"""Pod groups: all of a gang get nodes, or none does (KEP-4671)."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import core, workloads
from nominee.machinery.wire import codec
from nominee.scheduler.shell.process.wiring import Parts
from tests.scheduler.builders import node, pod
from tests.scheduler.shell.conftest import running
from tests.support.devices import claim, device, device_class, resource_slice
from tests.support.fake_api import FakeApi, Request

GATES = {"GenericWorkload": True, "GangScheduling": True}


def group(name: str = "g", **policy: Any) -> workloads.PodGroup:
    return codec.from_json(
        workloads.PodGroup,
        {"metadata": {"name": name, "namespace": "default"}, "spec": {"schedulingPolicy": policy}},
    )


def gang(min_count: int) -> workloads.PodGroup:
    return group(gang={"minCount": min_count})


def put_members(api: FakeApi, *names: str, cpu: str = "1", **spec: Any) -> None:
    for name in names:
        api.put(pod(name, cpu=cpu, schedulingGroup={"podGroupName": "g"}, **spec).pod)


def bound(api: FakeApi, *names: str) -> list[bool]:
    return [bool(api.pod(name).spec.nodeName) for name in names]


def condition(api: FakeApi) -> tuple[str, str, str]:
    found = api.find(kinds.POD_GROUP, "g", "default")
    assert found is not None
    for each in found.status.conditions:
        return each.status, each.reason, each.message
    return "", "", ""


def message(api: FakeApi, name: str) -> str:
    return next((c.message for c in api.pod(name).status.conditions), "")


def gated(parts: Parts) -> list[str]:
    return sorted(info.pod_info.name for info in parts.queue.gated())


async def test_a_gang_waits_for_its_group_and_for_enough_pods_and_then_gets_its_nodes() -> None:
    api = FakeApi()
    api.put(node("n1"))
    async with running(api, gates=GATES) as parts:
        put_members(api, "a", "b")
        api.put(pod("alone").pod)
        await api.until(lambda: bound(api, "alone") == [True])
        assert gated(parts) == ["a", "b"]
        api.put(gang(3))
        await api.until(lambda: parts.informers.listers[kinds.POD_GROUP].get("g", "default") is not None)
        assert gated(parts) == ["a", "b"]
        put_members(api, "c")
        await api.until(lambda: all(bound(api, "a", "b", "c")))
        await api.until(lambda: condition(api) == ("True", "Scheduled", ""))
        put_members(api, "late")
        await api.until(lambda: bound(api, "late") == [False] and message(api, "late") != "")
    # n1 has four cpus, and `alone` one of them. The gang stays placed all the same.
    assert condition(api) == ("True", "Scheduled", "")


async def test_a_condition_whose_write_failed_is_computed_again_from_the_group_as_it_is_now() -> None:
    api = FakeApi()
    api.put(node("n1"))

    def change_and_fail(request: Request) -> Exception | None:
        found = api.find(kinds.POD_GROUP, "g", "default")
        if request.verb != "patch/status" or request.kind != "PodGroup" or found is None:
            return None
        if found.metadata.generation == 2:
            return None
        found.metadata.generation = 2
        api.put(found)
        return errors.service_unavailable("etcd has not answered")

    api.reject = change_and_fail
    async with running(api, gates=GATES):
        put_members(api, "a", "b")
        api.put(gang(2))
        await api.until(lambda: condition(api) == ("True", "Scheduled", ""))
    found = api.find(kinds.POD_GROUP, "g", "default")
    assert found is not None
    assert [each.observedGeneration for each in found.status.conditions] == [2]


async def test_the_pods_of_a_group_name_one_scheduler() -> None:
    api = FakeApi()
    api.put(node("n1"))
    api.put(gang(2))
    async with running(api, gates=GATES, profiles=["default-scheduler", "other"]):
        put_members(api, "a")
        put_members(api, "b", schedulerName="other")
        await api.until(lambda: message(api, "a") != "" and message(api, "b") != "")
    assert bound(api, "a", "b") == [False, False]
    assert message(api, "a") == (
        "all pods in a single pod group should have the same .spec.schedulerName set, "
        'got: "other" and "default-scheduler"'
    )


async def test_where_not_all_fit_none_is_bound_and_nothing_stays_taken() -> None:
    api = FakeApi()
    api.put(node("n1", cpu="2"))
    api.put(gang(3))
    async with running(api, gates=GATES) as parts:
        put_members(api, "a", "b", "c")
        await api.until(lambda: condition(api) == ("False", "Unschedulable", "pod group is unschedulable"))
        await api.until(lambda: all(message(api, name) for name in "abc"))
        assert bound(api, "a", "b", "c") == [False] * 3
        assert parts.cache.assumed_pods() == {}
        # Two had a place, the third had none; who is third is a matter of who came to the queue last.
        waited = "pod group is unschedulable, one or more plugins asked to wait and no plugin rejected pod"
        texts = sorted(message(api, name) for name in "abc")
        assert texts[0].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert all(text.startswith(waited) for text in texts[1:])
        api.put(node("n2", cpu="1"))
        await api.until(lambda: all(bound(api, "a", "b", "c")))
        await api.until(lambda: condition(api) == ("True", "Scheduled", ""))
    nominated = {request.key for request in api.requests if "nominatedNodeName" in str(request.body)}
    assert len(nominated) == 2  # the one that completes the gang does not wait on Permit


async def test_a_group_without_a_minimum_takes_what_it_gets() -> None:
    api = FakeApi()
    api.put(node("n1", cpu="2"))
    api.put(group(basic={}))
    async with running(api, gates=GATES):
        put_members(api, "a", "b", "c")
        await api.until(lambda: sum(bound(api, "a", "b", "c")) == 2)
        await api.until(lambda: condition(api) == ("True", "Scheduled", ""))


async def test_a_gang_that_needs_evictions_waits_for_them_as_a_whole() -> None:
    api = FakeApi()
    api.put(node("n1", cpu="1"))
    api.put(node("n2", cpu="1"))
    api.put(pod("small", on="n1").pod)
    api.put(gang(2))
    async with running(api, gates=GATES):
        put_members(api, "a", "b", priority=10)
        await api.until(lambda: all(bound(api, "a", "b")))
        assert ("delete", None) in api.writes("small")
        await api.until(lambda: condition(api) == ("True", "Scheduled", ""))
    assert {api.pod(name).spec.nodeName for name in "ab"} == {"n1", "n2"}


async def test_a_gang_that_evictions_would_not_help_evicts_no_pod() -> None:
    """One of its pods could have the small one's place; the other fits nowhere."""
    api = FakeApi()
    api.put(node("n1", cpu="1"))
    api.put(pod("small", on="n1").pod)
    api.put(gang(2))
    async with running(api, gates=GATES) as parts:
        put_members(api, "a", priority=10)
        put_members(api, "b", cpu="8", priority=10)
        await api.until(lambda: condition(api) == ("False", "Unschedulable", "pod group is unschedulable"))
        await api.until(lambda: parts.queue.counts()["unschedulable"] == 2)
        rejectors = {info.pod_info.name: info.rejectors for info in parts.queue.unschedulable()}
        assert rejectors == {"a": {"GangScheduling"}, "b": {"NodeResourcesFit"}}
        # The other pod's room is the gang's, and nothing of the eviction that was not made holds it back.
        api.put(node("n2", cpu="9"))
        await api.until(lambda: all(bound(api, "a", "b")))
    assert api.writes("small") == []


async def test_the_pod_that_completes_a_gang_brings_the_others_along() -> None:
    api = FakeApi()
    api.put(node("n1"))
    api.put(gang(3))
    async with running(api, gates=GATES) as parts:
        put_members(api, "a", "b")
        await api.until(lambda: gated(parts) == ["a", "b"])
        put_members(api, "c")
        await api.until(lambda: all(bound(api, "a", "b", "c")))
    assert parts.metrics.group_attempts.labels("unschedulable", "default-scheduler")._value.get() == 0


async def test_pods_of_a_gang_share_a_claim() -> None:
    """All have it, and go where its device is, though none has it when they are placed."""
    api = FakeApi()
    for name in ("n1", "n2"):
        api.put(node(name))
    api.put(device_class())
    api.put(resource_slice("s1", device("gpu-0"), node="n2"))
    api.put(claim("claim", uid="uid-claim"))
    api.put(gang(3))
    async with running(api, gates=GATES):
        put_members(api, "a", "b", "c", resourceClaims=[{"name": "d", "resourceClaimName": "claim"}])
        await api.until(lambda: all(bound(api, "a", "b", "c")))
    assert {api.pod(name).spec.nodeName for name in "abc"} == {"n2"}
    found = api.find(kinds.RESOURCE_CLAIM, "claim", "default")
    assert found is not None
    assert [r.device for r in found.status.allocation.devices.results] == ["gpu-0"]
    assert sorted(r.name for r in found.status.reservedFor) == ["a", "b", "c"]


async def test_a_smaller_minimum_lets_the_gang_go() -> None:
    api = FakeApi()
    api.put(node("n1"))
    api.put(gang(3))
    async with running(api, gates=GATES) as parts:
        put_members(api, "a", "b")
        await api.until(lambda: gated(parts) == ["a", "b"])
        api.put(gang(2))
        await api.until(lambda: all(bound(api, "a", "b")))


async def test_without_the_gates_pods_of_a_group_are_pods() -> None:
    api = FakeApi()
    api.put(node("n1"))
    async with running(api):
        put_members(api, "a")
        await api.until(lambda: bound(api, "a") == [True])


async def test_a_group_that_was_placed_while_its_failure_was_written_is_shown_as_placed() -> None:
    api = FakeApi()
    api.put(node("n1", cpu="2"))
    api.put(gang(3))
    api.hold["get/podgroups"] = held = anyio.Event()
    async with running(api, gates=GATES):
        put_members(api, "a", "b", "c")
        await api.until(lambda: message(api, "a") != "")
        api.put(node("n2", cpu="2"))
        await api.until(lambda: all(bound(api, "a", "b", "c")))
        assert condition(api) == ("", "", "")
        held.set()
        await api.until(lambda: condition(api) == ("True", "Scheduled", ""))


async def test_a_gang_that_fits_nowhere_is_not_tried_all_the_time() -> None:
    """Its pods ask for one another at Permit; those that are tried with them need not be asked for."""
    api = FakeApi()
    api.put(node("n1", cpu="2"))
    api.put(gang(3))
    async with running(api, gates=GATES) as parts:
        put_members(api, "a", "b", "c")
        await api.until(lambda: condition(api)[0] == "False")
        for _ in range(2000):
            await anyio.lowlevel.checkpoint()
        tried = [parts.queue.get(ObjectKey("default", name)) for name in "abc"]
        assert max(info.attempts for info in tried if info is not None) < 20  # one a second, not every turn


TOPOLOGY = {**GATES, "TopologyAwareWorkloadScheduling": True}


def racked(name: str, rack: str, cpu: str) -> core.Node:
    made = node(name, cpu=cpu)
    made.metadata.labels["rack"] = rack
    return made


def together(min_count: int) -> workloads.PodGroup:
    """A gang all of whose pods must be in one rack."""
    made = gang(min_count)
    made.spec.schedulingConstraints.topology.add(key="rack")
    return made


async def test_a_gang_goes_to_the_rack_that_has_room_for_it() -> None:
    """Each rack has room for one pod on its roomiest node; only one has it for both."""
    api = FakeApi()
    for made in (racked("a1", "a", "9"), racked("b1", "b", "4"), racked("b2", "b", "4"), node("n", cpu="9")):
        api.put(made)
    api.put(together(2))
    async with running(api, gates=TOPOLOGY):
        put_members(api, "p", "q", cpu="4", topologySpreadConstraints=spread_over_hosts())
        await api.until(lambda: all(bound(api, "p", "q")))
        assert {api.pod(name).spec.nodeName for name in "pq"} == {"b1", "b2"}
        # Those that come later must join them.
        put_members(api, "late", cpu="4")
        await api.until(lambda: message(api, "late") != "")
        assert message(api, "late").startswith("0/2 nodes are available: 2 Insufficient cpu.")


async def test_the_rack_with_room_for_more_pods_is_taken() -> None:
    api = FakeApi()
    for made in (racked("a1", "a", "2"), racked("b1", "b", "3"), racked("c1", "c", "1")):
        api.put(made)
    api.put(together(2))
    async with running(api, gates=TOPOLOGY):
        put_members(api, "p", "q", "r")
        await api.until(lambda: all(bound(api, "p", "q", "r")))
        assert {api.pod(name).spec.nodeName for name in "pqr"} == {"b1"}


async def test_a_gang_for_which_no_rack_has_room_is_rejected_and_nothing_stays_taken() -> None:
    api = FakeApi()
    for made in (racked("a1", "a", "1"), racked("b1", "b", "1")):
        api.put(made)
    api.put(together(2))
    async with running(api, gates=TOPOLOGY) as parts:
        put_members(api, "p", "q")
        text = "0/2 placements are available, first placement status: pod group is unschedulable"
        await api.until(lambda: condition(api) == ("False", "Unschedulable", text))
        assert parts.cache.assumed_pods() == {}
        api.put(racked("b2", "b", "1"))
        await api.until(lambda: all(bound(api, "p", "q")))
    assert {api.pod(name).spec.nodeName for name in "pq"} == {"b1", "b2"}


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ({"x": "a1", "y": "b1"}, "more than 1 domain found for pod group: a, b"),
        ({"x": "a1", "y": "n"}, "no topology domain found for pod default/y"),
        ({"x": "gone"}, 'getting node for pod default/x: nodeinfo not found for node name "gone"'),
    ],
)
async def test_pods_that_are_not_in_one_rack_are_an_error_of_the_group(
    nodes: dict[str, str], text: str
) -> None:
    api = FakeApi()
    for made in (racked("a1", "a", "9"), racked("b1", "b", "9"), node("n", cpu="9")):
        api.put(made)
    api.put(together(1))
    for name, on in nodes.items():
        api.put(pod(name, on=on, schedulingGroup={"podGroupName": "g"}).pod)
    async with running(api, gates=TOPOLOGY):
        put_members(api, "p")
        wanted = f"cannot determine domain for already scheduled pods: {text}"
        await api.until(lambda: condition(api) == ("False", "SchedulerError", wanted))
        await api.until(lambda: message(api, "p") == wanted)


def spread_over_hosts() -> list[dict[str, Any]]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchExpressions": [{"key": "no", "operator": "DoesNotExist"}]},
            "minDomains": 2,
        }
    ]
