"""DynamicResources: extended resources provided by devices (KEP-5004)."""

from __future__ import annotations

from nominee.machinery.api import kinds
from nominee.scheduler.framework.types import PodInfo
from tests.scheduler.builders import node, pod
from tests.scheduler.plugins.claim_stage import FINALIZER, S1, Stage
from tests.support.devices import (
    device_class,
)

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


def test_a_device_plugin_that_has_it_is_used() -> None:
    stage = Stage(GPUS, S1)
    plugged = node("n2")
    plugged.status.allocatable["example.com/gpu"].string = "4"
    stage.desk.cache.put_node(plugged)
    stage.desk.cache.update_snapshot(stage.framework.snapshot)
    who = asking()
    assert stage.feasible(who) == ["n1", "n2"]
    assert stage.reserve(who, "n2") is None


def test_without_the_gate_devices_give_no_extended_resources() -> None:
    stage = Stage(GPUS, S1, gates={"DRAExtendedResource": False})
    assert stage.verdicts(asking()) == dict.fromkeys(("n1", "n2"), "Insufficient example.com/gpu")
