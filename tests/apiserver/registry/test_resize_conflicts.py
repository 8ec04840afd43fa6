"""Which rule of pods/resize wins where a request breaks several; rules that the recordings do not have."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from nominee.machinery.api.errors import StatusError
from nominee.machinery.features.gates import Version
from tests.apiserver.registry.test_resize_validation import CASES, RECORDED, resize

BURSTABLE = next(case for case in CASES if case["name"] == "admission-no-declared-features-burstable")
TIGHT = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "tight", "namespace": "default"},
    "spec": {"limits": [{"type": "Container", "max": {"cpu": "120m"}}]},
}
NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"
ABOVE_MAXIMUM = 'pods "p" is forbidden: maximum cpu usage per Container is 120m, but limit is 200m'


def case(*, cpu: str = "150m", limit: str = "200m", **more: Any) -> dict[str, Any]:
    """Return a resize of a pod whose container has cpu 100m, limit 200m, on a node without features."""
    made = copy.deepcopy(BURSTABLE) | more
    resources = made["new"]["spec"]["containers"][0]["resources"]
    resources["requests"]["cpu"], resources["limits"]["cpu"] = cpu, limit
    return made


def guaranteed(made: dict[str, Any]) -> dict[str, Any]:
    """Make the pod of a case Guaranteed: its requests are its limits."""
    for pod in (made["old"], made["new"]):
        for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])):
            container["resources"]["requests"] = dict(container["resources"]["limits"])
        pod["status"]["qosClass"] = "Guaranteed"
    return made


async def refusal(made: dict[str, Any], version: Version = RECORDED) -> StatusError:
    with pytest.raises(StatusError) as caught:
        await resize(made, version)
    return caught.value


def pod_level(made: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    """Give the pod of a case a cpu request as a whole, which the resize changes."""
    for pod, cpu in ((made["old"], old), (made["new"], new)):
        pod["spec"]["resources"] = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    return made


async def test_another_namespace_is_refused_before_what_else_is_wrong() -> None:
    """Source: kube-apiserver 1.36, registry/rest BeforeUpdate."""
    made = case(limitRanges=[TIGHT])
    made["new"]["metadata"]["namespace"] = "other"
    made["new"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "300m"  # above its limit
    error = await refusal(made)
    assert (error.code, error.reason, error.message) == (400, "BadRequest", NAMESPACE)


async def test_no_namespace_is_the_request_s_namespace() -> None:
    made = case()
    del made["new"]["metadata"]["namespace"]
    assert (await resize(made)).metadata.namespace == "default"


async def test_validation_comes_before_a_limit_range() -> None:
    error = await refusal(case(cpu="300m", limitRanges=[TIGHT]))
    assert (error.code, error.reason) == (422, "Invalid")


@pytest.mark.parametrize("cpu", ["100m", "50m"], ids=["without a change", "smaller"])
async def test_a_limit_range_that_the_pod_violates_already_refuses_any_resize(cpu: str) -> None:
    error = await refusal(case(cpu=cpu, limitRanges=[TIGHT]))
    assert (error.code, error.message) == (403, ABOVE_MAXIMUM)


async def test_a_limit_range_comes_before_the_node_s_features() -> None:
    error = await refusal(pod_level(case(limit="150m", limitRanges=[TIGHT]), "150m", "250m"))
    assert (
        error.message == 'pods "p" is forbidden: maximum cpu usage per Container is 120m, but limit is 150m'
    )


@pytest.mark.parametrize("sent", [True, False])
async def test_a_limit_range_leaves_terminating_pods_alone(sent: bool) -> None:
    """The stored pod decides, whatever the body says. Source: kube-apiserver 1.36, LimitRanger."""
    made = case(limitRanges=[TIGHT])
    for pod in (made["old"], made["new"]) if sent else (made["old"],):
        pod["metadata"] |= {"deletionTimestamp": "2023-11-14T22:13:30Z", "deletionGracePeriodSeconds": 30}
    await resize(made)


NOT_AVAILABLE = 'pods "p" is forbidden: pod update requires features {} which are not available on node "n1"'


async def test_the_node_s_features_come_before_its_capacity() -> None:
    error = await refusal(pod_level(case(limit="200m"), "150m", "64"))
    assert error.message == NOT_AVAILABLE.format("InPlacePodLevelResourcesVerticalScaling")


@pytest.mark.parametrize(("minor", "needs"), [(35, True), (36, False)])
async def test_the_cpu_of_a_guaranteed_pod_needs_a_feature_until_1_35(minor: int, needs: bool) -> None:
    """Source: kubernetes/kubernetes#136759."""
    made = guaranteed(case(limit="400m", gates={"NodeDeclaredFeatures": True}))
    if needs:
        error = await refusal(made, Version(1, minor))
        assert error.message == NOT_AVAILABLE.format("GuaranteedQoSPodCPUResize")
    else:
        await resize(made, Version(1, minor))


async def test_the_cpu_of_an_init_container_needs_no_feature_for_guaranteed_pods() -> None:
    """Only cpus of ordinary containers are pinned. Source: component-helpers 1.35, nodedeclaredfeatures."""
    made = case(limit="200m")
    sidecar = {
        **made["old"]["spec"]["containers"][0],
        "name": "i",
        "restartPolicy": "Always",
        "resources": {"limits": {"cpu": "100m", "memory": "100Mi"}},
    }
    for pod, cpu in ((made["old"], "100m"), (made["new"], "50m")):
        one = copy.deepcopy(sidecar)
        one["resources"]["limits"]["cpu"] = cpu
        pod["spec"]["initContainers"] = [one]
    made["gates"] = {"NodeDeclaredFeatures": True}
    pod = await resize(guaranteed(made), Version(1, 35))
    assert pod.spec.initContainers[0].resources.requests["cpu"].string == "50m"
