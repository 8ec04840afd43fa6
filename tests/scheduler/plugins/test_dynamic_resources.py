"""DynamicResources at its extension points, against an API server in memory."""

from __future__ import annotations

import gc
import weakref
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from nominee.machinery.features.gates import Gates, Version
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code, FilterError
from nominee.scheduler.framework.runtime.profile import ArgumentError
from nominee.scheduler.framework.scheduling.algorithm import pre_filter
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.dynamic_resources import arguments
from nominee.scheduler.plugins.dynamic_resources.tracker import ClaimTracker, manager_of
from tests.scheduler.builders import VERSION, pod
from tests.scheduler.plugins.claim_stage import FINALIZER, S1, Stage, allocated, mine, user
from tests.support.devices import (
    claim,
    device,
    first_of,
    request,
    resource_slice,
    using,
)


async def test_a_claim_is_allocated_reserved_and_written() -> None:
    stage = Stage(mine(), S1)
    assert await stage.bind(user()) is None
    found = stage.claim()
    assert [(r.pool, r.device) for r in found.status.allocation.devices.results] == [("s1", "gpu-0")]
    assert [r.uid for r in found.status.reservedFor] == ["uid-p"]
    assert list(found.metadata.finalizers) == [FINALIZER]
    assert stage.writes() == [("update", "ResourceClaim")] * 2  # the finalizer, then the status


async def test_a_pod_without_claims_costs_nothing() -> None:
    stage = Stage(mine(), S1)
    who = pod("p")
    assert stage.feasible(who) == ["n1", "n2"]
    assert "DynamicResources" in stage.state.skip_filter_plugins
    status, _ = stage.plugin.pre_bind_pre_flight(stage.state, who, "n1")
    assert status is not None
    assert status.is_skip
    assert stage.api.requests == []


def test_nodes_without_the_devices() -> None:
    stage = Stage(mine(), S1)
    assert stage.verdicts(user()) == {"n2": "cannot allocate all claims"}
    status = stage.framework.run_filter_plugins(stage.state, user(), stage.framework.snapshot.nodes[1])
    assert status is not None
    assert (status.code, status.plugin) == (Code.UnschedulableAndUnresolvable, "DynamicResources")


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ((), 'could not find ResourceClaim "default/claim"'),
        ((mine(deletionTimestamp="2026-01-01T00:00:00Z"),), 'resourceclaim "claim" is being deleted'),
        ((claim("claim", request(of="nope")),), "request r: device class nope does not exist"),
        (
            (allocated("n1", *(f"u{n}" for n in range(256))),),
            "resourceclaim in use",
        ),
    ],
)  # fmt: skip
def test_what_pre_filter_rejects(objects: tuple[Any, ...], text: str) -> None:
    stage = Stage(*objects, S1)
    state = CycleState()
    _, status, _ = stage.framework.run_pre_filter_plugins(state, user(), stage.framework.snapshot)
    assert status is not None
    assert (status.code, status.reasons) == (Code.UnschedulableAndUnresolvable, (text,))


def test_a_template_whose_claim_is_not_there_yet_gates_the_pod() -> None:
    stage = Stage(S1)
    who = pod("p")
    using(who.pod, template="t")
    status = stage.plugin.pre_enqueue(who)
    assert status is not None
    assert status.message() == 'pod "default/p": ResourceClaim not created yet'
    who.pod.status.resourceClaimStatuses.add(name="device", resourceClaimName="claim")
    stage.api.put(mine())
    status = stage.plugin.pre_enqueue(who)
    assert status is not None
    assert (
        status.message() == "ResourceClaim default/claim was not created for pod default/p (pod is not owner)"
    )


def test_a_broken_selector_is_an_error() -> None:
    stage = Stage(claim("claim", request(where='device.attributes["x"].y')), S1)
    state, snapshot = CycleState(), stage.framework.snapshot
    _, status, _ = stage.framework.run_pre_filter_plugins(state, user(), snapshot)
    assert status is None
    with pytest.raises(FilterError, match="CEL runtime error: no such key: y"):
        stage.framework.filter_rows(state, user(), snapshot, slice(0, 2))


def test_reserved_devices_are_in_use_before_they_are_written() -> None:
    stage = Stage(mine(), claim("other", uid="uid-other"), S1)
    first, second = user(), user("q", "other")
    assert stage.feasible(first) == ["n1"]
    assert stage.reserve(first, "n1") is None
    before = stage.state
    assert stage.feasible(second) == []
    _, status, _ = stage.framework.run_pre_filter_plugins(CycleState(), user("r"), stage.framework.snapshot)
    assert status is not None
    assert status.message() == "resource claim default/claim is in the process of being allocated"
    stage.plugin.unreserve(before, first, "n1")
    assert stage.feasible(second) == ["n1"]


async def test_an_allocated_claim_is_shared_where_it_is() -> None:
    stage = Stage(allocated("n1", "other"), S1)
    assert stage.verdicts(user()) == {"n2": "resourceclaim not available on the node"}
    assert await stage.bind(user()) is None
    assert [r.uid for r in stage.claim().status.reservedFor] == ["uid-other", "uid-p"]


def scores_of(stage: Stage, who: PodInfo) -> dict[str, int]:
    """The scores by node, before they are normalized."""
    snapshot = stage.framework.snapshot
    rows = np.arange(len(snapshot), dtype=np.intp)
    scores = stage.plugin.score_all(stage.state, who, snapshot, rows)
    return dict(zip([node.name for node in snapshot.nodes], scores.tolist(), strict=True))


def test_earlier_alternatives_score_more() -> None:
    big = resource_slice("s1", device("gpu-0", attributes={"size": 2}), node="n1")
    small = resource_slice("s2", device("gpu-0", attributes={"size": 1}), node="n2")
    best = request("best", where='device.attributes["gpu.example.com"].size > 1')
    stage = Stage(claim("claim", first_of("r", best, request("any"))), big, small)
    who = user()
    assert stage.feasible(who) == ["n1", "n2"]
    assert scores_of(stage, who) == {"n1": 8, "n2": 7}


def test_claims_allocated_earlier_count_for_every_node() -> None:
    big = resource_slice("s1", device("gpu-0", attributes={"size": 2}), node="n1")
    small = resource_slice("s2", device("gpu-0", attributes={"size": 1}), node="n2")
    best = request("best", where='device.attributes["gpu.example.com"].size > 1')
    result = {"request": "r/b", "driver": "gpu.example.com", "pool": "net", "device": "nic"}
    shared = claim(
        "shared", first_of("r", request("a"), request("b")),
        uid="uid-shared", status={"allocation": {"devices": {"results": [result]}}},
    )  # fmt: skip
    stage = Stage(claim("claim", first_of("r", best, request("any"))), shared, big, small)
    who = user("p", "shared", "claim")
    assert stage.feasible(who) == ["n1", "n2"]
    scores = scores_of(stage, who)
    assert scores == {"n1": 7 + 8, "n2": 7 + 7}
    assert list(stage.plugin.normalize(stage.state, who, np.array(list(scores.values())))) == [100, 93]


# Arguments


@pytest.mark.parametrize(
    ("args", "version", "text"),
    [
        ({"filterTimeout": "-1s"}, "1.36", "must be zero or positive"),
        ({"filterTimeout": "soon"}, "1.36", "not a duration"),
        ({"bindingTimeout": "10ms"}, "1.36", "must be at least 1 second"),
        ({"bindingTimeout": "10s"}, "1.35", "requires feature gate DRADeviceBindingConditions"),
    ],
)
def test_arguments_that_are_rejected(args: dict[str, str], version: str, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        arguments.read(args, Gates("scheduler", Version.parse(version)))


def test_arguments() -> None:
    gates = Gates("scheduler", VERSION)
    assert arguments.read({}, gates) == arguments.Timeouts(10.0, 600.0)
    given = {"filterTimeout": "1m30s", "bindingTimeout": "1.5s"}
    assert arguments.read(given, gates) == arguments.Timeouts(90.0, 1.5)


@pytest.mark.parametrize(
    ("version", "code", "text"),
    [
        ("1.35", Code.UnschedulableAndUnresolvable, "timed out trying to allocate devices"),
        (
            "1.36",
            Code.Error,
            'running "DynamicResources" filter plugin: node n1: timed out trying to allocate devices',
        ),
    ],
)
def test_the_search_of_a_node_has_a_limit(version: str, code: Code, text: str) -> None:
    many = [device(f"d{n}", attributes={"half": f"h{n % 2}"}) for n in range(40)]
    wanted = claim("claim", request(count=25), constraints=[{"matchAttribute": "gpu.example.com/half"}])
    stage = Stage(wanted, resource_slice("s1", *many, node="n1"), version=Version.parse(version))
    tick = iter(range(1_000_000))
    stage.clock.monotonic = lambda: float(next(tick))  # type: ignore[method-assign]  # each look takes a second
    pre_filter(stage.framework, stage.state, who := user(), stage.framework.snapshot)
    first = next(n for n in stage.framework.snapshot.nodes if n.name == "n1")
    status = stage.framework.run_filter_plugins(stage.state, who, first)
    assert status is not None
    assert (status.code, status.message()) == (code, text)


def test_a_manager_goes_with_its_plugins() -> None:
    stage = Stage(mine(), S1)
    manager = weakref.ref(manager_of(stage.framework))
    del stage
    gc.collect()
    assert manager() is None


def test_profiles_share_what_is_in_use() -> None:
    stage = Stage(mine(), S1)
    assert manager_of(stage.framework).claims is manager_of(stage.framework).claims
    assert manager_of(stage.framework).claims is not manager_of(Stage(mine(), S1).framework).claims


@pytest.mark.parametrize(
    ("shown", "is_used"),
    [("4", True), ("5", False), ("6", False), ("", True)],
    ids=["not yet", "its write", "later", "not listed"],
)
def test_a_claim_that_went_before_the_answer_is_not_assumed(shown: str, is_used: bool) -> None:
    lister = SimpleNamespace(get=lambda *_: None, list=lambda *_: [], changes=1, resource_version=shown)
    tracker = ClaimTracker(cast("Any", lister))
    answer = allocated("n1", "p")
    answer.metadata.resourceVersion = "5"
    tracker.assume(answer)
    assert bool(tracker.allocated().devices) is is_used
