"""DynamicResources: extended resources provided by devices (KEP-5004)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.pb import core, devices
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.dynamic_resources import extended
from nominee.scheduler.plugins.dynamic_resources.class_map import ClassMap
from nominee.scheduler.plugins.node_resources import NodeResourcesFit
from tests.scheduler.builders import node, pod
from tests.scheduler.plugins.claim_stage import FINALIZER, S1, Stage
from tests.support.devices import allocation, claim, device, device_class, resource_slice

# Extended resources

GPUS = device_class("gpu", extendedResourceName="example.com/gpu")


def asking(name: str = "p") -> PodInfo:
    info = pod(name)
    info.pod.spec.containers[0].resources.requests["example.com/gpu"].string = "1"
    return PodInfo(info.pod)


async def test_an_extended_resource_is_given_by_devices() -> None:
    stage = Stage(GPUS, S1)
    who = asking()
    stage.api.put(who.pod)
    assert stage.verdicts(who) == {"n2": "cannot allocate all claims"}
    assert await stage.bind(who) is None
    (found,) = stage.api.all_of(kinds.RESOURCE_CLAIM)
    assert found.metadata.annotations["resource.kubernetes.io/extended-resource-claim"] == "true"
    requests = found.spec.devices.requests
    assert [(r.name, r.exactly.deviceClassName, r.exactly.count) for r in requests] == [
        ("container-0-request-1", "gpu", 1)
    ]
    assert [r.request for r in found.status.allocation.devices.results] == ["container-0-request-1"]
    patch = next(r.body for r in stage.api.requests if r[:2] == ("patch/status", "Pod"))
    assert patch["status"]["extendedResourceClaimStatus"] == {
        "resourceClaimName": found.metadata.name,
        "requestMappings": [
            {
                "containerName": "c",
                "resourceName": "example.com/gpu",
                "requestName": "container-0-request-1",
            }
        ],
    }


async def test_a_claim_for_extended_resources_is_deleted_when_binding_fails() -> None:
    stage = Stage(GPUS, S1)
    who = asking()
    stage.api.put(who.pod)
    assert await stage.bind(who) is None
    stage.plugin.unreserve(stage.state, who, "n1")
    await stage.run(stage.plugin.after_unreserve(stage.state, who, "n1"))
    assert ("delete", "ResourceClaim") in stage.writes()
    (found,) = stage.api.all_of(kinds.RESOURCE_CLAIM)
    assert FINALIZER not in found.metadata.finalizers


@pytest.mark.parametrize(
    ("verb", "error"),
    [
        ("create", "create claim for extended resources default/: no"),
        ("patch/status", "update pod default/p ExtendedResourceClaimStatus: no"),
    ],
)
async def test_errors_name_the_write_that_failed(verb: str, error: str) -> None:
    stage = Stage(GPUS, S1)
    who = asking()
    stage.api.put(who.pod)
    stage.api.rejections[verb] = [errors.bad_request("no")]
    status = await stage.bind(who)
    assert status is not None
    assert status.message() == error


def test_a_device_plugin_that_has_it_is_used() -> None:
    stage = Stage(GPUS, S1)
    plugged = node("n2")
    plugged.status.allocatable["example.com/gpu"].string = "4"
    stage.desk.cache.put_node(plugged)
    stage.desk.cache.update_snapshot(stage.framework.snapshot)
    who = asking()
    assert stage.feasible(who) == ["n1", "n2"]
    assert stage.reserve(who, "n2") is None


async def test_a_node_whose_device_plugin_is_gone_has_devices() -> None:
    stage = Stage(GPUS, S1)
    former = node("n1")
    former.status.allocatable["example.com/gpu"].string = "0"
    stage.desk.cache.put_node(former)
    stage.desk.cache.update_snapshot(stage.framework.snapshot)
    who = asking()
    stage.api.put(who.pod)
    assert await stage.bind(who) is None
    (found,) = stage.api.all_of(kinds.RESOURCE_CLAIM)
    assert len(found.status.allocation.devices.results) == 1


def needs(*containers: tuple[str, int], init: int = 0) -> tuple[list[tuple[str, int]], list[tuple[str, str]]]:
    """Return the requests and the mappings of containers; `init`: so many of them are init containers.

    The name of a sidecar begins with an s.
    """
    found = core.Pod()
    for number, (name, count) in enumerate(containers):
        spec = found.spec.initContainers if number < init else found.spec.containers
        container = spec.add(name=name)
        container.resources.requests["example.com/gpu"].string = str(count)
        if name.startswith("s"):
            container.restartPolicy = "Always"
    asked = extended.asked_by(found, ClassMap([GPUS]))
    claim = extended.claim_for_node(devices.ResourceClaim(), asked, {})
    assert claim is not None
    status: Any = extended.pod_status_of(claim, asked)["status"]
    mappings = status["extendedResourceClaimStatus"]["requestMappings"]
    return (
        [
            (request.name.removesuffix("-request-0"), request.exactly.count)
            for request in claim.spec.devices.requests
        ],
        [(one["containerName"], one["requestName"].removesuffix("-request-0")) for one in mappings],
    )


def test_init_containers_use_the_devices_of_later_containers() -> None:
    # The example of kubernetes/kubernetes#134880: three devices at most at one time.
    requests, mappings = needs(("a", 1), ("side", 1), ("b", 2), ("c", 1), init=3)
    assert requests == [("container-1", 1), ("container-2", 1), ("container-3", 1)]
    assert mappings == [
        ("side", "container-1"),
        ("c", "container-3"),
        ("a", "container-1"),
        ("b", "container-3"),
        ("b", "container-2"),
    ]


def test_init_containers_share_what_they_need_beyond_that() -> None:
    requests, mappings = needs(("a", 2), ("b", 3), ("c", 1), init=2)
    assert requests == [("container-1", 2), ("container-2", 1)]
    assert mappings == [
        ("c", "container-2"),
        ("a", "container-2"),
        ("a", "container-1"),
        ("b", "container-2"),
        ("b", "container-1"),
    ]


def test_a_sidecar_leaves_its_devices_to_none_after_it() -> None:
    requests, mappings = needs(("side", 1), ("b", 1), ("c", 0), init=2)
    assert requests == [("container-0", 1), ("container-1", 1)]
    assert mappings == [("side", "container-0"), ("b", "container-1")]


def test_without_the_gate_devices_give_no_extended_resources() -> None:
    stage = Stage(GPUS, S1, gates={"DRAExtendedResource": False})
    assert stage.verdicts(asking()) == dict.fromkeys(("n1", "n2"), "Insufficient example.com/gpu")


@pytest.mark.parametrize(("gate", "scores"), [(True, [50, 66]), (False, [0, 0])])
def test_a_node_is_scored_by_its_devices_that_are_free(gate: bool, scores: list[int]) -> None:
    """LeastAllocated: of four devices one is in use; one of n2's is of another class."""
    big = {"productName": "big"}
    gpus = device_class("gpu", 'device.attributes["gpu.example.com"].productName == "big"')
    gpus.spec.extendedResourceName = "example.com/gpu"
    other = device("other", attributes={"productName": "small"})
    stage = Stage(
        gpus,
        resource_slice("s1", *(device(f"gpu-{n}", attributes=big) for n in range(4)), node="n1"),
        resource_slice("s2", *(device(f"gpu-{n}", attributes=big) for n in range(3)), other, node="n2"),
        claim("used", uid="uid-used", status={"allocation": allocation(("s1", "gpu-0"), node="n1")}),
        gates={"DRAExtendedResource": gate},
    )
    strategy = {"type": "LeastAllocated", "resources": [{"name": "example.com/gpu", "weight": 1}]}
    fit = NodeResourcesFit({"scoringStrategy": strategy}, stage.framework)
    snapshot, who = stage.framework.snapshot, asking()
    rows = np.array([snapshot.row_of["n1"], snapshot.row_of["n2"]])
    fit.pre_score(stage.state, who, snapshot, rows)
    assert fit.score_all(stage.state, who, snapshot, rows).tolist() == scores
