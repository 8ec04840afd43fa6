"""Allocated resources and resources in force, in a pod's status."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.kubelet.features import status_features
from nominee.kubelet.resources.pod_resources import PodResources, desired_resources
from nominee.kubelet.resources.requirements import Requirements
from nominee.kubelet.runtime import sandbox as runtime
from nominee.kubelet.status.pod_status import View, build
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.wire import codec

NOW = 1_700_000_000.0
CURRENT = Version(1, 36)
SMALL = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "128Mi"}}
REQUESTS_ONLY = {"requests": {"cpu": "1", "memory": "1Gi"}}
BIG = {"requests": {"cpu": "2", "memory": "1Gi"}}


def _pod(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), **spec: Any) -> core.Pod:
    document = {
        "metadata": {"name": "a", "namespace": "default", "uid": "uid"},
        "spec": {
            "containers": [{"name": f"c{i}", "resources": one} for i, one in enumerate(containers)],
            "initContainers": [
                {"name": f"i{i}", "resources": one["resources"], **one.get("more", {})}
                for i, one in enumerate(init)
            ],
            **spec,
        },
    }
    return codec.from_json(core.Pod, document)


def _status(
    pod: core.Pod,
    *,
    allocated: PodResources | None = None,
    version: Version = CURRENT,
    terminal: bool = False,
) -> dict[str, Any]:
    desired = desired_resources(pod)
    sandbox = runtime.start(runtime.prepare(pod, now=NOW), desired, ip="10.1.0.2", now=NOW)
    if terminal:
        sandbox = runtime.stop(sandbox, now=NOW)
    view = View(
        pod=pod,
        host_ip="172.16.0.1",
        now=NOW,
        sandbox=sandbox,
        allocated=allocated or desired,
        terminal=terminal,
    )
    status = codec.to_json(build(view, status_features(version, Gates("kubelet", version))))
    return {name: status[name] for name in ("allocatedResources", "resources") if name in status}


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(
            _pod(SMALL, SMALL),
            {
                "allocatedResources": {"cpu": "200m", "memory": "128Mi"},
                "resources": {
                    "requests": {"cpu": "200m", "memory": "128Mi"},
                    "limits": {"cpu": "400m", "memory": "256Mi"},
                },
            },
            id="sum of the containers",
        ),
        pytest.param(
            _pod(SMALL, REQUESTS_ONLY),
            {
                "allocatedResources": {"cpu": "1100m", "memory": "1088Mi"},
                "resources": {"requests": {"cpu": "1100m", "memory": "1088Mi"}},
            },
            id="no limit where a container has none",
        ),
        pytest.param(
            _pod(SMALL, init=({"resources": BIG},)),
            {
                "allocatedResources": {"cpu": "2", "memory": "1Gi"},
                "resources": {"requests": {"cpu": "2", "memory": "1Gi"}},
            },
            id="an init container needs more",
        ),
        pytest.param(
            _pod({"requests": {"cpu": "1", "ephemeral-storage": "1Gi", "example.com/gpu": "2"}}),
            {
                "allocatedResources": {"cpu": "1", "ephemeral-storage": "1Gi", "example.com/gpu": "2"},
                "resources": {"requests": {"cpu": "1"}},
            },
            id="only cpu and memory have a cgroup",
        ),
        pytest.param(_pod({}), {"resources": {}}, id="nothing requested"),
        pytest.param(
            _pod(SMALL, resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}),
            {
                "allocatedResources": {"cpu": "1"},
                "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            },
            id="pod-level resources",
        ),
    ],
)
def test_a_running_pod_shows_its_resources_as_a_whole(pod: core.Pod, want: dict[str, Any]) -> None:
    assert _status(pod) == want


def test_an_allocated_resize_shows_before_it_is_in_force() -> None:
    larger = PodResources((("c0", Requirements.from_json({"requests": {"cpu": "500m", "memory": "64Mi"}})),))
    shown = _status(_pod(SMALL), allocated=larger)
    assert shown["allocatedResources"] == {"cpu": "500m", "memory": "64Mi"}
    assert shown["resources"]["requests"] == {"cpu": "100m", "memory": "64Mi"}


def test_a_pod_that_has_ended_has_nothing_in_force() -> None:
    assert _status(_pod(SMALL), terminal=True) == {"allocatedResources": {"cpu": "100m", "memory": "64Mi"}}


def test_before_1_36_a_pod_as_a_whole_shows_none() -> None:
    assert _status(_pod(SMALL), version=Version(1, 35)) == {}


def container_status(
    in_force: dict[str, Any], allocated: dict[str, Any], *, state: str = "running"
) -> dict[str, Any]:
    """Return the resources that the status of a container shows."""
    pod = _pod(in_force)
    sandbox = runtime.start(runtime.prepare(pod, now=NOW), desired_resources(pod), ip="10.1.0.2", now=NOW)
    if state == "crashed":
        sandbox = runtime.crash(sandbox, now=NOW, exit_code=1)
    elif state == "exited":
        sandbox = runtime.stop(sandbox, now=NOW)
    own = PodResources((("c0", Requirements.from_json(allocated)),))
    view = View(pod=pod, host_ip="172.16.0.1", now=NOW, sandbox=sandbox, allocated=own)
    (row,) = build(view, status_features(CURRENT, Gates("kubelet", CURRENT))).containerStatuses
    shown: dict[str, Any] = codec.to_json(row)
    assert shown.get("allocatedResources", {}) == allocated.get("requests", {})
    return shown["resources"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("in_force", "allocated", "want"),
    [
        pytest.param(SMALL, REQUESTS_ONLY | {"limits": BIG["requests"]}, SMALL, id="as the runtime has it"),
        pytest.param(
            {"requests": {"cpu": "1"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            id="a new limit shows at once",
        ),
        pytest.param(
            {"requests": {"memory": "1Gi"}},
            {"requests": {"memory": "1Gi", "cpu": "1"}},
            {"requests": {"memory": "1Gi", "cpu": "2m"}},
            id="every cgroup has a weight",
        ),
        pytest.param(
            {"requests": {"cpu": "1m"}, "limits": {"cpu": "1m"}},
            {"requests": {"cpu": "100m"}, "limits": {"cpu": "100m"}},
            {"requests": {"cpu": "2m"}, "limits": {"cpu": "10m"}},
            id="less than a cgroup can have",
        ),
        pytest.param(
            {"requests": {"cpu": "1m"}, "limits": {"cpu": "1m"}},
            {"requests": {"cpu": "2m"}, "limits": {"cpu": "5m"}},
            {"requests": {"cpu": "2m"}, "limits": {"cpu": "5m"}},
            id="the same to a cgroup",
        ),
        pytest.param(
            {"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}},
            {"requests": {"cpu": "2", "ephemeral-storage": "1Gi"}},
            {"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}},
            id="other resources",
        ),
    ],
)
def test_a_running_container_shows_what_the_runtime_reports(
    in_force: dict[str, Any], allocated: dict[str, Any], want: dict[str, Any]
) -> None:
    """kubelet 1.36, convertContainerStatusResources."""
    assert container_status(in_force, allocated) == want


@pytest.mark.parametrize("state", ["crashed", "exited"])
def test_a_container_that_does_not_run_shows_its_allocation(state: str) -> None:
    """kubelet 1.36, convertContainerStatusResources."""
    assert container_status(SMALL, BIG, state=state) == BIG


def test_init_containers_that_cannot_be_resized_show_their_resources_too() -> None:
    pod = _pod(SMALL, init=({"resources": BIG},))
    sandbox = runtime.start(runtime.prepare(pod, now=NOW), desired_resources(pod), ip="10.1.0.2", now=NOW)
    own = desired_resources(pod, init_containers=False)
    view = View(pod=pod, host_ip="172.16.0.1", now=NOW, sandbox=sandbox, allocated=own)
    version = Version(1, 35)
    (row,) = build(view, status_features(version, Gates("kubelet", version))).initContainerStatuses
    shown = codec.to_json(row)
    assert (shown["allocatedResources"], shown["resources"]) == (BIG["requests"], BIG)
