"""Which devices claims get on a node. Names and cases after the real allocator's own (1.36)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import pytest

from nominee.machinery.api.pb import devices
from nominee.scheduler.plugins.dynamic_resources.device_allocation.allocator import Allocator
from nominee.scheduler.plugins.dynamic_resources.device_allocation.model import (
    AllocatedState,
    AllocationError,
    DeadlineError,
    DeviceId,
    Features,
    Node,
    NodeAllocationError,
    SliceView,
    amounts_of,
)
from nominee.scheduler.plugins.dynamic_resources.device_allocation.pools import SliceIndex
from tests.support.devices import DRIVER, claim, device, device_class, first_of, request, resource_slice

N1 = Node("n1", {"zone": "a"})
N2 = Node("n2", {"zone": "b"})
ZONE_A = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
GPU = device_class("gpu")
MODEL = f"{DRIVER}/model"


def gpu(name: str, model: str = "", **fields: Any) -> dict[str, Any]:
    return device(name, **({"attributes": {"model": model}} if model else {}), **fields)


def allocator(
    slices: Sequence[devices.ResourceSlice],
    *,
    classes: Sequence[devices.DeviceClass] = (GPU,),
    taken: Sequence[tuple[str, str]] = (),
    capacity: Mapping[tuple[str, str], Mapping[str, str]] | None = None,
    features: Features | None = None,
) -> Allocator:
    by_name = {each.metadata.name: each for each in classes}
    state = AllocatedState(
        {DeviceId(DRIVER, pool, name) for pool, name in taken},
        {
            DeviceId(DRIVER, *key): amounts_of(
                {n: devices.DeviceCapacity(value={"string": v}).value for n, v in amounts.items()}
            )
            for key, amounts in (capacity or {}).items()
        },
    )
    numbers = count(1)
    index = SliceIndex(SliceView(each) for each in slices)
    return Allocator(features or Features(), state, by_name.get, index, lambda: f"share-{next(numbers)}")


def chosen(
    slices: Sequence[devices.ResourceSlice], *claims: devices.ResourceClaim, node: Node = N1, **more: Any
) -> list[list[str]] | None:
    """Per claim the devices, as `request=pool/device`."""
    found = allocator(slices, **more).allocate(node, claims)
    if found is None:
        return None
    return [[f"{r.request}={r.pool}/{r.device}" for r in a.devices.results] for a in found]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        # Pools by name, slices by name, devices as they are listed; what needs conditions comes last.
        (["p3", "p2", "p1"], "p1/d"),
        (["b", "a"], "a/d"),
    ],
)
def test_pools_are_tried_by_name(names: list[str], expected: str) -> None:
    slices = [resource_slice(name, gpu("d"), node="n1") for name in names]
    assert chosen(slices, claim()) == [[f"r={expected}"]]


def test_slices_are_tried_by_name_and_devices_in_order() -> None:
    slices = [
        resource_slice("s2", gpu("a"), node="n1", pool="p", count=2),
        resource_slice("s1", gpu("z"), gpu("b"), node="n1", pool="p", count=2),
    ]
    assert chosen(slices, claim("c", request(count=3))) == [["r=p/z", "r=p/b", "r=p/a"]]


def test_devices_that_need_conditions_are_tried_last() -> None:
    slices = [
        resource_slice("a", gpu("slow", bindingConditions=["ready"]), node="n1"),
        resource_slice("b", gpu("quick"), node="n1"),
    ]
    assert chosen(slices, claim("c", request(count=2))) == [["r=b/quick", "r=a/slow"]]
    off = Features(binding_conditions=False)
    assert chosen(slices, claim("c", request(count=2)), features=off) is None


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        ({"node": "n1"}, {"n1"}),
        ({"allNodes": True}, {"n1", "n2"}),
        ({"nodeSelector": ZONE_A}, {"n1"}),
        ({"perDeviceNodeSelection": True}, {"n2"}),
    ],
)
def test_where_a_slice_can_be_reached(spec: dict[str, Any], nodes: set[str]) -> None:
    own = gpu("d", nodeName="n2") if "perDeviceNodeSelection" in spec else gpu("d")
    slices = [resource_slice("s", own, **spec)]
    assert {n.name for n in (N1, N2) if chosen(slices, claim(), node=n)} == nodes


def test_the_allocation_says_where_it_can_be_used() -> None:
    def selector(**spec: Any) -> str:
        found = allocator([resource_slice("s", gpu("d", **spec.pop("own", {})), **spec)]).allocate(
            N1, [claim()]
        )
        assert found is not None
        terms = found[0].nodeSelector.nodeSelectorTerms
        if not terms:
            return "everywhere"
        fields, labels = terms[0].matchFields, terms[0].matchExpressions
        return " ".join(f"{r.key} {r.operator} {list(r.values)}" for r in (*fields, *labels))

    assert selector() == "everywhere"
    assert selector(node="n1") == "metadata.name In ['n1']"
    assert selector(nodeSelector=ZONE_A) == "zone In ['a']"
    assert selector(own={"bindsToNode": True}) == "metadata.name In ['n1']"
    per_device = {"perDeviceNodeSelection": True, "own": {"nodeSelector": ZONE_A}}
    assert selector(**per_device) == "zone In ['a']"


def test_only_the_newest_generation_counts() -> None:
    old = resource_slice("old", gpu("d"), node="n1", pool="p", generation=1)
    new = resource_slice("new", gpu("e"), node="n1", pool="p", generation=2)
    assert chosen([old, new], claim()) == [["r=p/e"]]
    half = resource_slice("old", gpu("d"), node="n1", pool="p", generation=1, count=2)
    elsewhere = resource_slice("new", gpu("e"), node="n2", pool="p", generation=2)
    assert chosen([half, elsewhere], claim()) is None  # the pool is being replaced
    assert chosen([half, elsewhere], claim("c", request(allocationMode="All"))) is None


def test_nothing_is_taken_from_an_incomplete_pool() -> None:
    half = resource_slice("s", gpu("d"), node="n1", pool="p", count=2)
    assert chosen([half], claim()) is None
    rest = resource_slice("t", gpu("e"), node="n2", pool="p", count=2)
    assert chosen([half, rest], claim()) == [["r=p/d"]]  # the other slice is there, if not for this node


def test_all_of_an_incomplete_pool_is_an_error() -> None:
    half = resource_slice("s", gpu("d"), node="n1", pool="p", count=2)
    text = rf"asks for all devices, but resource pool {DRIVER}/p is currently being updated"
    with pytest.raises(AllocationError, match=text):
        chosen([half], claim("c", request(allocationMode="All")))


def test_a_pool_with_a_name_twice_is_invalid() -> None:
    twice = resource_slice("s", gpu("d"), gpu("d"), node="n1")
    with pytest.raises(NodeAllocationError, match="invalid resource pools were encountered"):
        chosen([twice], claim())
    other = resource_slice("t", gpu("e"), node="n1")
    assert chosen([twice, other], claim()) == [["r=t/e"]]


def test_devices_in_use_are_allocated_for_admin_access_only() -> None:
    slices = [resource_slice("s", gpu("d"), gpu("e"), node="n1")]
    assert chosen(slices, claim(), taken=[("s", "d")]) == [["r=s/e"]]
    assert chosen(slices, claim("c", request(count=2)), taken=[("s", "d")]) is None
    admin = claim("c", request(adminAccess=True, allocationMode="All"))
    assert chosen(slices, admin, taken=[("s", "d")]) == [["r=s/d", "r=s/e"]]
    with pytest.raises(AllocationError, match="admin access is requested, but the feature is disabled"):
        chosen(slices, admin, features=Features(admin_access=False))


def test_claims_of_one_pod_do_not_share_devices() -> None:
    slices = [resource_slice("s", gpu("d"), gpu("e"), node="n1")]
    assert chosen(slices, claim("a"), claim("b")) == [["r=s/d"], ["r=s/e"]]
    assert chosen(slices, claim("a"), claim("b", request(count=2))) is None


def test_class_and_request_both_select() -> None:
    classes = [device_class("gpu", f'device.driver == "{DRIVER}"')]
    slices = [resource_slice("s", gpu("d", "a"), gpu("e", "b"), node="n1")]
    wanted = claim("c", request(where=f'device.attributes["{DRIVER}"].model == "b"'))
    assert chosen(slices, wanted, classes=classes) == [["r=s/e"]]
    assert chosen(slices, wanted, classes=[device_class("gpu", "false")]) is None


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (request(where="nope"), r"claim default/c: selector #0: CEL compile error: compilation failed"),
        (
            request(where='device.attributes["x"].y'),
            r"claim default/c: selector #0: CEL runtime error: no such key: y",
        ),
        (request(of="missing"), r"claim default/c, request r: could not retrieve device class missing"),
        (request(count=33), r"number of requested devices 33 exceeds the claim limit of 32"),
        (request(allocationMode="Some"), r"unsupported count mode Some"),
    ],
)
def test_what_cannot_be_allocated_anywhere(wanted: dict[str, Any], text: str) -> None:
    with pytest.raises(AllocationError, match=text):
        chosen([resource_slice("s", gpu("d"), node="n1")], claim("c", wanted))


def test_the_search_backtracks() -> None:
    """The first request must leave the only device that the second one can use."""
    slices = [resource_slice("s", gpu("d", "b"), gpu("e", "a"), node="n1")]
    wanted = claim("c", request("any"), request("b", where=f'device.attributes["{DRIVER}"].model == "b"'))
    assert chosen(slices, wanted) == [["any=s/e", "b=s/d"]]


def test_matching_attributes() -> None:
    slices = [resource_slice("s", gpu("1", "a"), gpu("2", "b"), gpu("3"), gpu("4", "b"), node="n1")]
    same = [{"matchAttribute": MODEL}]
    assert chosen(slices, claim("c", request(count=2), constraints=same)) == [["r=s/2", "r=s/4"]]
    assert chosen(slices, claim("c", request(count=3), constraints=same)) is None
    only_one = [{"matchAttribute": MODEL, "requests": ["x"]}]
    wanted = claim("c", request("x"), request("y"), constraints=only_one)
    assert chosen(slices, wanted) == [["x=s/1", "y=s/2"]]


def test_distinct_attributes() -> None:
    slices = [resource_slice("s", gpu("1", "a"), gpu("2", "a"), gpu("3", "b"), gpu("4", "b"), node="n1")]
    distinct = [{"distinctAttribute": MODEL}]
    assert chosen(slices, claim("c", request(count=2), constraints=distinct)) == [["r=s/1", "r=s/3"]]
    assert chosen(slices, claim("c", request(count=3), constraints=distinct)) is None


def test_all_devices_that_a_constraint_forbids_are_an_error() -> None:
    slices = [resource_slice("s", gpu("1", "a"), gpu("2", "b"), node="n1")]
    wanted = claim("c", request(allocationMode="All"), constraints=[{"matchAttribute": MODEL}])
    with pytest.raises(AllocationError, match=rf"cannot add device {DRIVER}/s/2 because a claim constraint"):
        chosen(slices, wanted)


def test_all_means_at_least_one() -> None:
    assert (
        chosen([resource_slice("s", gpu("1"), node="n2")], claim("c", request(allocationMode="All"))) is None
    )


def test_alternatives_in_order() -> None:
    slices = [resource_slice("s", gpu("1", "a"), gpu("2", "b"), gpu("3", "b"), node="n1")]
    big = request("big", count=2, where=f'device.attributes["{DRIVER}"].model == "b"')
    wanted = claim("c", first_of("r", big, request("small")))
    assert chosen(slices, wanted) == [["r/big=s/2", "r/big=s/3"]]
    assert chosen(slices, wanted, taken=[("s", "3")]) == [["r/small=s/1"]]
    off = Features(prioritized_list=False)
    with pytest.raises(
        AllocationError, match="has subrequests, but the DRAPrioritizedList feature is disabled"
    ):
        chosen(slices, wanted, features=off)


def test_alternatives_that_need_too_many_devices_give_way() -> None:
    many = [gpu(f"d{n}") for n in range(40)]
    slices = [resource_slice("s", *many, node="n1")]
    wanted = claim(
        "c", first_of("r", request("big", count=30), request("small", count=1)), request("x", count=10)
    )
    found = chosen(slices, wanted)
    assert found is not None
    assert [name.split("=")[0] for name in found[0]] == ["r/small"] + ["x"] * 10


TAINT = {"key": "broken", "value": "fan", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("tolerations", "fits"),
    [
        ([], False),
        ([{"key": "broken", "operator": "Exists"}], True),
        ([{"operator": "Exists"}], True),
        ([{"key": "broken", "value": "fan"}], True),
        ([{"key": "broken", "value": "fan", "effect": "NoExecute"}], False),
        ([{"key": "broken", "value": "disk"}], False),
    ],
)
def test_taints(tolerations: list[dict[str, str]], fits: bool) -> None:
    slices = [resource_slice("s", gpu("d", taints=[TAINT]), node="n1")]
    assert (chosen(slices, claim("c", request(tolerations=tolerations))) is not None) is fits


def test_informational_taints_and_the_gate() -> None:
    informational = [resource_slice("s", gpu("d", taints=[TAINT | {"effect": "None"}]), node="n1")]
    assert chosen(informational, claim()) is not None
    tainted = [resource_slice("s", gpu("d", taints=[TAINT]), node="n1")]
    assert chosen(tainted, claim(), features=Features(taints=False)) is not None


def partition(name: str, memory: str, **fields: Any) -> dict[str, Any]:
    consumes = [{"counterSet": "card", "counters": {"memory": {"value": memory}}}]
    return gpu(name, consumesCounters=consumes, **fields)


COUNTERS = resource_slice(
    "counters",
    pool="p",
    count=2,
    sharedCounters=[{"name": "card", "counters": {"memory": {"value": "10Gi"}}}],
)


def test_partitions_share_counters() -> None:
    parts = resource_slice(
        "parts", partition("whole", "10Gi"), partition("half-0", "5Gi"), partition("half-1", "5Gi"),
        node="n1", pool="p", count=2,
    )  # fmt: skip
    slices = [COUNTERS, parts]
    assert chosen(slices, claim()) == [["r=p/whole"]]
    assert chosen(slices, claim("c", request(count=2))) == [["r=p/half-0", "r=p/half-1"]]
    assert chosen(slices, claim(), taken=[("p", "half-0")]) == [["r=p/half-1"]]
    assert chosen(slices, claim(), taken=[("p", "whole")]) is None
    assert chosen(slices, claim(), features=Features(partitionable=False)) is None


def test_devices_of_other_nodes_use_the_same_counters() -> None:
    counters = resource_slice(
        "counters",
        pool="p",
        count=3,
        sharedCounters=[{"name": "card", "counters": {"memory": {"value": "10Gi"}}}],
    )
    here = resource_slice("here", partition("a", "6Gi"), node="n1", pool="p", count=3)
    there = resource_slice("there", partition("b", "6Gi"), node="n2", pool="p", count=3)
    slices = [counters, here, there]
    assert chosen(slices, claim()) == [["r=p/a"]]
    assert chosen(slices, claim(), taken=[("p", "b")]) is None


def test_counters_that_do_not_exist_make_a_pool_invalid() -> None:
    parts = resource_slice("parts", partition("a", "1Gi"), node="n1", pool="q")
    with pytest.raises(NodeAllocationError):
        chosen([parts], claim())


def test_of_a_pool_one_of_whose_counters_is_overdrawn_nothing_is_available() -> None:
    sets = [{"name": n, "counters": {"memory": {"value": "10Gi"}}} for n in ("card", "other")]
    counters = resource_slice("counters", pool="p", count=2, sharedCounters=sets)
    far = [{"counterSet": "other", "counters": {"memory": {"value": "8Gi"}}}]
    parts = resource_slice(
        "parts", partition("a", "1Gi"), gpu("b", consumesCounters=far), gpu("c", consumesCounters=far),
        node="n1", pool="p", count=2,
    )  # fmt: skip
    assert chosen([counters, parts], claim(), taken=[("p", "b")]) == [["r=p/a"]]
    assert chosen([counters, parts], claim(), taken=[("p", "b"), ("p", "c")]) is None


def test_a_rejected_constraint_gives_counters_back() -> None:
    parts = resource_slice(
        "parts",
        partition("a", "6Gi", attributes={"model": "x"}),
        partition("b", "6Gi", attributes={"model": "y"}),
        partition("c", "4Gi", attributes={"model": "x"}),
        node="n1", pool="p", count=2,
    )  # fmt: skip
    wanted = claim("c", request(count=2), constraints=[{"matchAttribute": MODEL}])
    assert chosen([COUNTERS, parts], wanted) == [["r=p/a", "r=p/c"]]


SHARED: dict[str, Any] = {"allowMultipleAllocations": True, "capacity": {"memory": "10Gi"}}


def asking(memory: str) -> dict[str, Any]:
    return request(capacity={"requests": {"memory": memory}})


def test_shares_of_one_device() -> None:
    slices = [resource_slice("s", gpu("d", **SHARED), node="n1")]
    assert chosen(slices, claim("a", asking("4Gi")), claim("b", asking("6Gi"))) == [["r=s/d"], ["r=s/d"]]
    assert chosen(slices, claim("a", asking("4Gi")), claim("b", asking("7Gi"))) is None
    used = {("s", "d"): {"memory": "5Gi"}}
    assert chosen(slices, claim("a", asking("5Gi")), capacity=used) == [["r=s/d"]]
    assert chosen(slices, claim("a", asking("6Gi")), capacity=used) is None
    assert chosen(slices, claim("a"), capacity=used) is None  # without a request it is all of it
    assert chosen(slices, claim("a", request(capacity={"requests": {"cores": "1"}}))) is None


def test_a_request_does_not_have_two_shares_of_one_device() -> None:
    two = request(count=2, capacity={"requests": {"memory": "1Gi"}})
    slices = [resource_slice("s", gpu("d", **SHARED), node="n1")]
    assert chosen(slices, claim("a", two)) is None
    slices = [resource_slice("s", gpu("d", **SHARED), gpu("e", **SHARED), node="n1")]
    assert chosen(slices, claim("a", two)) == [["r=s/d", "r=s/e"]]
    one = [request(name, capacity={"requests": {"memory": "1Gi"}}) for name in ("x", "y")]
    assert chosen(slices, claim("a", *one)) == [["x=s/d", "y=s/d"]]


def test_the_same_devices_in_another_order_are_not_tried() -> None:
    many = [gpu(f"d{n}", model=f"m{n % 4}") for n in range(24)]
    search = allocator([resource_slice("s", *many, node="n1")])
    wanted = claim("c", request(count=7), constraints=[{"matchAttribute": MODEL}])
    assert search.allocate(N1, [wanted]) is None  # there are six of each model
    assert search.attempts < 300  # the sets of up to six of one model


def test_a_share_is_written_with_what_it_takes() -> None:
    slices = [resource_slice("s", gpu("d", **SHARED), node="n1")]
    found = allocator(slices).allocate(N1, [claim("a", asking("4Gi"))])
    assert found is not None
    result = found[0].devices.results[0]
    assert (result.shareID, result.consumedCapacity["memory"].string) == ("share-1", "4Gi")


@pytest.mark.parametrize(
    ("policy", "asked", "taken"),
    [
        ({"default": "1Gi"}, "", "1Gi"),
        ({"default": "1Gi", "validRange": {"min": "2Gi"}}, "1Gi", "2Gi"),
        ({"default": "2Gi", "validRange": {"min": "2Gi", "step": "2Gi"}}, "3Gi", "4Gi"),
        ({"default": "2Gi", "validRange": {"min": "2Gi", "max": "4Gi"}}, "5Gi", None),
        ({"default": "1Gi", "validValues": ["1Gi", "4Gi"]}, "2Gi", "4Gi"),
        ({"default": "1Gi", "validValues": ["1Gi", "4Gi"]}, "5Gi", None),
    ],
)
def test_request_policies(policy: dict[str, Any], asked: str, taken: str | None) -> None:
    own: dict[str, Any] = {
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "10Gi", "requestPolicy": policy}},
    }
    slices = [resource_slice("s", gpu("d", **own), node="n1")]
    found = allocator(slices).allocate(N1, [claim("a", asking(asked) if asked else request())])
    amounts = None if found is None else found[0].devices.results[0].consumedCapacity["memory"].string
    assert amounts == taken


def test_configuration_comes_from_the_class_once_and_from_the_claim() -> None:
    opaque: dict[str, Any] = {"opaque": {"driver": DRIVER, "parameters": {"a": 1}}}
    classes = [device_class("gpu", config=[opaque])]
    slices = [resource_slice("s", gpu("d"), gpu("e"), node="n1")]
    config = [{**opaque, "requests": ["y"]}, opaque]
    found = allocator(slices, classes=classes).allocate(
        N1, [claim("c", request("x"), request("y"), config=config)]
    )
    assert found is not None
    assert [(c.source, list(c.requests)) for c in found[0].devices.config] == [
        ("FromClass", ["x", "y"]),
        ("FromClaim", ["y"]),
        ("FromClaim", []),
    ]


def test_configuration_for_all_requests_names_none_of_them() -> None:
    opaque: dict[str, Any] = {"opaque": {"driver": DRIVER, "parameters": {"a": 1}}}
    slices = [resource_slice("s", gpu("d"), gpu("e"), node="n1")]
    asked = [first_of("x", request("a"), request("b")), request("y")]
    config = [
        {**opaque, "requests": names} for names in (["x/a", "x/b"], ["y", "x/a"], ["y", "x"], ["y", "x/b"])
    ]
    search = allocator(
        slices, classes=[device_class("gpu", config=[opaque])], features=Features(brief_config=True)
    )
    found = search.allocate(N1, [claim("c", *asked, config=config)])
    assert found is not None
    assert [list(c.requests) for c in found[0].devices.config] == [
        [],  # the class's
        ["x/a", "x/b"],
        *[[], []],  # once for each request, as ever
        *[[], []],
        ["y", "x/b"],
    ]


def test_a_search_in_vain_ends_at_its_deadline() -> None:
    devices_ = [gpu(f"d{n}", f"m{n % 2}") for n in range(40)]
    slices = [resource_slice("s", *devices_, node="n1")]
    wanted = claim("c", request(count=25), constraints=[{"matchAttribute": MODEL}])
    looks = count()
    with pytest.raises(DeadlineError):
        allocator(slices).allocate(N1, [wanted], lambda: next(looks) > 1000)
