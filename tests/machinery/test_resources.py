from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nominee.machinery.api.pb import core
from nominee.machinery.resources import pod_resources as resources
from nominee.machinery.wire import codec


def pod(spec: dict[str, Any], status: dict[str, Any] | None = None) -> core.Pod:
    return codec.from_json(core.Pod, {"spec": spec, "status": status or {}})


def container(name: str = "c", *, sidecar: bool = False, **requests: str) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "resources": {"requests": requests, "limits": requests}}
    if sidecar:
        made["restartPolicy"] = "Always"
    return made


def status(name: str, resources_: dict[str, str] | None, **allocated: str) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "allocatedResources": allocated}
    if resources_ is not None:
        made["resources"] = {"requests": resources_, "limits": resources_}
    return made


def pending(reason: str, condition_status: str = "True") -> dict[str, str]:
    return {"type": "PodResizePending", "status": condition_status, "reason": reason}


GI = 1 << 30


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {}),
        ({"containers": [container(cpu="1500m", memory="1Gi"), container("d", cpu="1")]},
         {"cpu": 2500, "memory": GI}),
        ({"containers": [container(cpu="1")],
          "initContainers": [container("i", cpu="3"), container("j", cpu="2")]},
         {"cpu": 3000}),
        # KEP-753: the init container after a sidecar runs beside it, the one before does not.
        ({"containers": [container(cpu="1")],
          "initContainers": [container("i", cpu="4"), container("s", sidecar=True, cpu="2"),
                             container("j", cpu="3")]},
         {"cpu": 5000}),
        ({"containers": [container(cpu="2")],
          "initContainers": [container("s", sidecar=True, cpu="2"), container("j", cpu="1")]},
         {"cpu": 4000}),
        ({"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "1Mi"}},
         {"cpu": 1250, "memory": 1 << 20}),
        # Pod-level requests replace the sum by resource; what may not be set there stays.
        ({"containers": [container(cpu="1", memory="1Gi", gpu="2")],
          "resources": {"requests": {"cpu": "3"}}},
         {"cpu": 3000, "memory": GI, "gpu": 2}),
        ({"containers": [container(cpu="1")], "resources": {"limits": {"cpu": "3"}}}, {"cpu": 1000}),
        # Halves of bytes and thousandths of milli-units add up before they are rounded.
        ({"containers": [container(memory="1500m"), container("d", memory="1500m")]}, {"memory": 3}),
        ({"containers": [container(cpu="1u"), container("d", cpu="1u")]}, {"cpu": 1}),
    ],
)  # fmt: skip
def test_requests(spec: dict[str, Any], expected: dict[str, int]) -> None:
    assert resources.pod_requests(pod(spec)) == expected


@pytest.mark.parametrize(
    ("desired", "actual", "allocated", "conditions", "expected_milli"),
    [
        ("2", {"cpu": "1"}, {"cpu": "1"}, [], 2000),
        ("1", {"cpu": "2"}, {"cpu": "1"}, [], 2000),
        ("1", {"cpu": "1"}, {"cpu": "2"}, [], 2000),
        ("1", None, {"cpu": "2"}, [], 1000),  # allocated alone does nothing
        ("9", {"cpu": "1"}, {"cpu": "2"}, [pending("Infeasible")], 2000),
        ("9", {"cpu": "1"}, {"cpu": "2"}, [pending("Infeasible", "False")], 2000),
        ("9", {"cpu": "1"}, {"cpu": "2"}, [pending("Deferred"), pending("Infeasible")], 9000),
        ("9", None, {"cpu": "2"}, [pending("Infeasible")], 9000),
    ],
)
def test_in_flight_resize(
    desired: str,
    actual: dict[str, str] | None,
    allocated: dict[str, str],
    conditions: list[dict[str, str]],
    expected_milli: int,
) -> None:
    resizing = pod(
        {"containers": [container(cpu=desired)]},
        {"containerStatuses": [status("c", actual, **allocated)], "conditions": conditions},
    )
    assert resources.pod_requests(resizing, use_status=True) == {"cpu": expected_milli}
    assert resources.pod_requests(resizing) == {"cpu": int(desired) * 1000}


def test_status_of_init_containers_counts_for_sidecars_only() -> None:
    statuses = [status("s", {"cpu": "4"}), status("i", {"cpu": "9"})]
    resizing = pod(
        {"containers": [container(cpu="1")],
         "initContainers": [container("s", sidecar=True, cpu="1"), container("i", cpu="1")]},
        {"initContainerStatuses": statuses},
    )  # fmt: skip
    assert resources.pod_requests(resizing, use_status=True) == {"cpu": 5000}


def test_pod_level_resize() -> None:
    resizing = pod(
        {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "2"}}},
        {"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "3"}},
    )
    assert resources.pod_requests(resizing, use_status=True) == {"cpu": 2000}
    assert resources.pod_requests(resizing, use_status=True, pod_level_status=True) == {"cpu": 5000}
    assert resources.pod_requests(resizing, pod_level=False) == {"cpu": 1000}
    assert resources.pod_requests(resizing, container_level=False) == {"cpu": 2000}


def test_missing_requests_are_filled_in_per_container() -> None:
    two = pod({"containers": [container(cpu="0"), container("d", memory="1")]})
    assert resources.pod_requests(two, missing={"cpu": 100, "memory": 7}) == {"cpu": 100, "memory": 8}


def test_limits() -> None:
    limited = pod(
        {"containers": [container(cpu="1")], "overhead": {"cpu": "1", "memory": "1Gi"}},
        {"containerStatuses": [status("c", {"cpu": "3"})]},
    )
    assert resources.pod_limits(limited) == {"cpu": 2000}, "overhead counts only where there is a limit"
    assert resources.pod_limits(limited, use_status=True, overhead=False) == {"cpu": 3000}


amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "x.y/z"]), st.integers(0, 50), max_size=3)
containers = st.lists(amounts, max_size=4)


def _spec(mains: list[dict[str, int]], inits: list[tuple[bool, dict[str, int]]]) -> dict[str, Any]:
    def made(name: str, sidecar: bool, requests: dict[str, int]) -> dict[str, Any]:
        return container(name, sidecar=sidecar, **{key: str(value) for key, value in requests.items()})

    return {
        "containers": [made(f"c{i}", False, each) for i, each in enumerate(mains)],
        "initContainers": [made(f"i{i}", sidecar, each) for i, (sidecar, each) in enumerate(inits)],
    }


@given(containers, st.lists(st.tuples(st.booleans(), amounts), max_size=4))
def test_requests_are_the_peak_of_the_pods_life(
    mains: list[dict[str, int]], inits: list[tuple[bool, dict[str, int]]]
) -> None:
    """Against a model that lives through the phases: each init container in turn, then all together."""
    running: dict[str, int] = {}
    peak: dict[str, int] = {}

    def see(usage: dict[str, int]) -> None:
        for name, number in usage.items():
            peak[name] = max(peak.get(name, 0), number)

    for sidecar, requests in inits:
        usage = resources.add(running, requests)
        see(usage)
        if sidecar:
            running = usage
    for requests in mains:
        running = resources.add(running, requests)
    see(running)
    expected = {name: number * (1000 if name == "cpu" else 1) for name, number in peak.items()}
    assert resources.pod_requests(pod(_spec(mains, inits))) == expected


@given(amounts, amounts)
def test_dictionaries_add_up(one: dict[str, int], other: dict[str, int]) -> None:
    total = resources.add(one, other)
    assert resources.covers(total, one)
    assert resources.subtract(total, other) == one | {name: one.get(name, 0) for name in other}
    assert resources.covers(one, other) == all(one.get(name, 0) >= other[name] for name in other)
