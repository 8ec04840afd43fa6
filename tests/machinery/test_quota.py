"""What quotas count of an object, and what they require of it."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.resources import quota
from nominee.machinery.wire import codec


def _pod(*containers: dict[str, Any], **more: Any) -> core.Pod:
    rows = [{"name": name, "resources": each} for name, each in zip("abc", containers, strict=False)]
    return codec.from_json(core.Pod, {"metadata": {"name": "p"}, "spec": {"containers": rows}, **more})


@pytest.mark.parametrize(
    ("whole", "missing"),
    [
        ({}, "requests.cpu for: b; requests.memory for: a,b"),
        ({"requests": {"cpu": "1"}}, ""),
        ({"limits": {"hugepages-2Mi": "2Mi"}}, ""),
    ],
)
def test_a_pod_with_resources_of_its_own_need_specify_no_other_ones(
    whole: dict[str, Any], missing: str
) -> None:
    asking = _pod({"requests": {"cpu": "1"}}, {})
    asking.spec.resources.CopyFrom(codec.from_json(core.ResourceRequirements, whole))
    names = ["pods", "requests.cpu", "requests.memory"]
    assert quota.missing_resources(asking, names) == missing


def _used(found: core.Pod) -> dict[str, str]:
    return {name: str(value) for name, value in quota.usage(kinds.POD, found, 0).items()}


def _resized(wanted: str, actual: str, allocated: str, *, infeasible: bool = False) -> core.Pod:
    sides = {"requests": {"cpu": actual}, "limits": {"cpu": actual}}
    row = {"name": "a", "resources": sides, "allocatedResources": {"cpu": allocated}}
    pending = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    status = {"containerStatuses": [row], "conditions": pending if infeasible else []}
    return _pod({"requests": {"cpu": wanted}, "limits": {"cpu": wanted}}, status=status)


@pytest.mark.parametrize(
    ("found", "requests", "limits"),
    [
        (_resized("1", "2", "1"), "2", "2"),
        (_resized("1", "1", "1500m"), "1500m", "1"),
        (_resized("3", "2", "1"), "3", "3"),
        (_resized("9", "1", "2", infeasible=True), "2", "1"),
    ],
)
def test_a_pod_that_is_resized_uses_the_most_of_old_and_new_resources(
    found: core.Pod, requests: str, limits: str
) -> None:
    used = _used(found)
    assert (used["cpu"], used["requests.cpu"], used["limits.cpu"]) == (requests, requests, limits)


def test_a_status_counts_for_no_ordinary_init_container() -> None:
    found = _pod({"requests": {"cpu": "1"}})
    row = {"name": "i", "resources": {"requests": {"cpu": "9"}}}
    found.status.initContainerStatuses.add().CopyFrom(codec.from_json(core.ContainerStatus, row))
    found.spec.initContainers.add(name="i").resources.requests["cpu"].string = "2"
    assert _used(found)["cpu"] == "2"
    found.spec.initContainers[0].restartPolicy = "Always"
    assert _used(found)["cpu"] == "10"


def test_quotas_are_counted_again_when_a_resize_is_in_force() -> None:
    before, after = _resized("1", "2", "1"), _resized("1", "1", "1")
    assert quota.may_recount(kinds.POD, before, after, 0)
    assert not quota.may_recount(kinds.POD, after, _resized("1", "1", "1", infeasible=True), 0)
