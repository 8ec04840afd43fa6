"""Pods with ResourceClaims: scale-up, scale-down, and the snapshot of dynamic resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nominee.autoscaler.options import Compat
from nominee.autoscaler.planning.scale_down.device_utilization import device_utilization
from nominee.autoscaler.planning.snapshot.dynamic_resources import DynamicResources
from nominee.autoscaler.planning.snapshot.forkable_table import ForkableTable
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import core, devices
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire.codec import from_json
from tests.autoscaler.builders import autoscaler, new_world, node, pod
from tests.autoscaler.harness import Harness
from tests.autoscaler.world import World
from tests.support.devices import allocation, claim, device, device_class, request, resource_slice, using


class Cluster:
    """A world in which every node has two GPUs."""

    def __init__(self, *, target: int, compat: Compat = Compat.FIXED) -> None:
        self.clock = FakeClock()
        self.world: World = new_world(self.clock, target=target)
        self.claims: ForkableTable[Any] = ForkableTable()
        self.slices: ForkableTable[Any] = ForkableTable()
        self.classes: ForkableTable[Any] = ForkableTable()
        self.classes.put(device_class())
        self.compat = compat

    @property
    def listers(self) -> Mapping[Kind[Any], ForkableTable[Any]]:
        return {
            kinds.RESOURCE_CLAIM: self.claims,
            kinds.RESOURCE_SLICE: self.slices,
            kinds.DEVICE_CLASS: self.classes,
        }

    def autoscaler(self) -> Harness:
        return autoscaler(self.world, self.compat, listers=self.listers)

    def node(self, name: str, *, published: bool = True, age: float = 3600.0) -> core.Node:
        if published:
            self.slices.put(resource_slice(f"s-{name}", device("gpu-0"), device("gpu-1"), node=name))
        return node(self.world, name, age=age)

    def pod(self, name: str, *, on: str = "", gpu: str = "", count: int = 1, shared: str = "") -> core.Pod:
        """Add a pod with its own or a shared claim; the claim of a pod on a node is allocated."""
        made = pod(self.world, name, "100m", on=on, unschedulable=not on)
        if shared:
            using(made, claim=shared)
            return made
        using(made, template="t")
        made.status.resourceClaimStatuses.add(name="device", resourceClaimName=f"c-{name}")
        status = {"allocation": allocation((f"s-{on}", gpu), node=on)} if on else {}
        row = claim(f"c-{name}", request(count=count), uid=f"uid-c-{name}", status=status)
        row.metadata.ownerReferences.add(kind="Pod", name=name, uid=made.metadata.uid, controller=True)
        if on:
            row.status.reservedFor.add(resource="pods", name=name, uid=made.metadata.uid)
        self.claims.put(row)
        return made


async def test_pods_with_claims_trigger_as_many_nodes_as_have_their_devices() -> None:
    it = Cluster(target=1)
    it.node("n1")
    it.pod("a", on="n1", gpu="gpu-0")
    for name in ("p1", "p2", "p3", "p4"):
        it.pod(name)
    loop = it.autoscaler()
    await loop.run_once()
    # One pod gets the free device of n1; three more need two nodes of two devices.
    assert it.world.increased == {"ng1": 2}
    texts = [event.message for event in it.world.events if event.reason == "TriggeredScaleUp"]
    assert texts == ["pod triggered scale-up: [{ng1 1->3 (max: 10)}]"] * 3


async def test_the_event_of_a_pod_that_fits_no_node_has_the_reason() -> None:
    it = Cluster(target=1)
    it.node("n1")
    it.pod("greedy", count=3)
    await it.autoscaler().run_once()
    assert it.world.increased == {}
    [event] = [event for event in it.world.events if event.reason == "NotTriggerScaleUp"]
    assert event.message == "pod didn't trigger scale-up: 1 cannot allocate all claims"


async def test_the_template_of_a_group_keeps_the_devices_of_deleted_nodes() -> None:
    it = Cluster(target=1)
    it.node("n1")
    loop = it.autoscaler()
    await loop.run_once()
    it.world.nodes.clear()
    it.slices.drop(ObjectKey("", "s-n1"))
    it.world.targets["ng1"] = 0
    it.pod("p")
    await it.clock.advance(10.0)
    await loop.run_once()
    assert it.world.increased == {"ng1": 1}


async def test_a_new_node_without_published_devices_is_upcoming() -> None:
    it = Cluster(target=1)
    it.node("n1")
    it.pod("a", on="n1", gpu="gpu-0")
    it.pod("b", on="n1", gpu="gpu-1")
    it.pod("p")
    loop = it.autoscaler()
    await loop.run_once()
    assert it.world.increased == {"ng1": 1}
    it.node("n2", published=False, age=0.0)
    await it.clock.advance(10.0)
    result = await loop.run_once()
    assert it.world.increased == {"ng1": 1}, "a second node would be for the same pod"
    assert result.unschedulable_pods == 1


async def test_users_of_a_shared_claim_fit_the_node_of_its_devices() -> None:
    it = Cluster(target=1)
    it.node("n1")
    it.claims.put(claim("c", uid="uid-c", status={"allocation": allocation(("s-n1", "gpu-0"), node="n1")}))
    it.pod("p1", shared="c")
    it.pod("p2", shared="c")
    await it.autoscaler().run_once()
    assert it.world.increased == {}


@pytest.mark.parametrize(("free", "reason"), [(True, "NotUnneededLongEnough"), (False, "NoPlaceToMovePods")])
async def test_a_node_is_unneeded_if_its_pods_get_devices_elsewhere(free: bool, reason: str) -> None:
    it = Cluster(target=2)
    it.node("n1")
    it.node("n2")
    it.pod("a", on="n1", gpu="gpu-0")
    it.pod("b", on="n2", gpu="gpu-0")
    if not free:
        it.pod("c", on="n2", gpu="gpu-1")
    loop = it.autoscaler()
    await loop.run_once()
    assert str(loop.state.planner.unremovable.reasons["n1"]) == reason
    used = loop.state.planner.utilization["n1"]
    assert used.share == 0.5, "only devices count"
    assert str(used) == "{0 0 0 0.5 gpu.example.com/s-n1 0.5}"
    assert ("n1" in loop.state.planner.unneeded_names()) is free
    await loop.run_once()
    assert ("n1" in loop.state.planner.unneeded_names()) is free, "the simulation was reverted"


async def test_loops_do_not_accumulate_handlers() -> None:
    it = Cluster(target=1)
    it.node("n1")
    it.pod("p")
    loop = it.autoscaler()
    seen = []
    for _ in range(3):
        await loop.run_once()
        seen.append((len(loop.state.devices.claims._handlers), len(it.claims._handlers)))
    assert seen == [(1, 0)] * 3


def test_changes_of_a_fork_are_reverted() -> None:
    source: ForkableTable[Any] = ForkableTable()
    source.put(claim("c", uid="uid-c"))
    it = DynamicResources({kinds.RESOURCE_CLAIM: source})
    it.refresh()
    in_use = it._manager.claims.allocated().devices
    taken = from_json(devices.AllocationResult, allocation(("pool", "gpu-0")))
    it.fork()
    it.claims.allocate("uid-c", taken)
    it.fork()
    it.claims.allocate("uid-of-an-extended-resource", taken)
    assert len(it.claims.list()) == 2
    it.commit()
    assert len(in_use) == 1
    it.revert()
    assert it.claims.list() == source.list()
    assert len(in_use) == 0
    it.claims.allocate("uid-c", taken)
    it.refresh()
    assert len(in_use) == 0, "a refresh discards the simulation"


def test_a_forked_table_cannot_be_reset() -> None:
    it: ForkableTable[Any] = ForkableTable()
    it.fork()
    with pytest.raises(RuntimeError, match="fork"):
        it.reset(())
    it.commit()
    row = claim("c")
    it.reset([row])
    assert it.get("c", "default") is row
    assert it.list("elsewhere") == []
    it.drop(key_of(row))
    assert it.list() == []


def _part(name: str, *, memory: int, compute: int, of: str) -> dict[str, Any]:
    counters = {"memory": {"value": str(memory)}, "compute": {"value": str(compute)}}
    return device(name, consumesCounters=[{"counterSet": of, "counters": counters}])


def _taken(*names: str, pool: str = "s", admin: bool = False) -> devices.ResourceClaim:
    row = claim("c", status={"allocation": allocation(*((pool, name) for name in names))})
    for result in row.status.allocation.devices.results:
        result.adminAccess = admin
    return row


WHOLE = resource_slice("s", *(device(f"d{i}") for i in range(4)), node="n")
PARTS = resource_slice(
    "s",
    _part("p1", memory=80, compute=10, of="a"),
    _part("p2", memory=20, compute=10, of="a"),
    _part("p3", memory=60, compute=0, of="b"),
    device("d0"),
    node="n",
    count=2,
)
COUNTERS = resource_slice(
    "counters",
    node="n",
    pool="s",
    count=2,
    sharedCounters=[
        {"name": name, "counters": {"memory": {"value": "100"}, "compute": {"value": "100"}}} for name in "ab"
    ],
)


@pytest.mark.parametrize(
    ("slices", "claims", "share"),
    [
        ([WHOLE], [], 0.0),
        ([WHOLE], [_taken("d0"), _taken("d1", "d2")], 0.75),
        ([WHOLE], [_taken("d0", admin=True)], 0.0),
        ([WHOLE], [_taken("d0", pool="another")], 0.0),
        ([WHOLE], [claim("c")], None),
        ([PARTS], [], None),
        ([PARTS, COUNTERS], [_taken("p1")], 0.4),
        ([PARTS, COUNTERS], [_taken("p1", "p3")], 0.7),
        ([PARTS, COUNTERS], [_taken("p1", "d0")], (0.4 * 2 + 1.0) / 3),
    ],
)
def test_the_utilization_of_devices(slices: list[Any], claims: list[Any], share: float | None) -> None:
    used = device_utilization(slices, claims)
    assert (used and used.share) == (None if share is None else pytest.approx(share))


async def test_pods_of_drained_nodes_need_devices_elsewhere() -> None:
    it = Cluster(target=2)
    it.node("n1")
    it.node("n2")
    it.pod("a", on="n1", gpu="gpu-0")
    it.pod("b", on="n2", gpu="gpu-0")
    it.pod("c", on="n2", gpu="gpu-1")
    loop = it.autoscaler()
    loop.state.deletions.start_deletion("n1", "ng1", drain=True)
    it.world.nodes["n1"].spec.unschedulable = True
    await loop.run_once()
    assert it.world.increased == {"ng1": 1}, "a new node for the drained pod"


async def test_the_template_of_new_nodes_has_the_most_devices_of_any() -> None:
    it = Cluster(target=2)
    it.node("n1", published=False, age=5.0)
    it.node("n2", age=5.0)
    it.pod("a", on="n2", gpu="gpu-0")
    it.pod("b", on="n2", gpu="gpu-1")
    it.pod("p")
    loop = it.autoscaler()
    await loop.run_once()
    assert it.world.increased == {"ng1": 1}, "the provider's template with the devices of n2"
    it.node("n3", published=False, age=0.0)
    await it.clock.advance(10.0)
    await loop.run_once()
    assert it.world.increased == {"ng1": 1}, "n1 and n3 have yet to publish theirs"
