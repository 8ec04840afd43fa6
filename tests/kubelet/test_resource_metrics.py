"""`/metrics/resource`, and the count of terminated containers."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from nominee.kubelet.node.cpu_time import CpuTime, Use
from nominee.kubelet.resources.pod_resources import PodResources
from nominee.kubelet.resources.requirements import Requirements
from nominee.kubelet.runtime import sandbox as runtime
from nominee.kubelet.runtime.sandbox import PodSandbox
from nominee.kubelet.runtime.terminations import terminations
from nominee.kubelet.shell import metrics
from nominee.kubelet.shell.serving.resource_metrics import ResourceMetrics
from nominee.machinery.api.pb import core
from tests.kubelet.executor import container, new_pod

_RESOURCES = PodResources((("c", Requirements.from_json({"requests": {"cpu": "500m", "memory": "1Ki"}})),))
_OF_C = {"container": "c", "pod": "a", "namespace": "default"}
_OF_A = {"pod": "a", "namespace": "default"}


def _pod() -> core.Pod:
    pod = new_pod("a", container("c"))
    pod.spec.initContainers.append(container("i"))
    return pod


def _prepared() -> PodSandbox:
    return runtime.prepare(_pod(), now=100.0)


def _running() -> PodSandbox:
    return runtime.start(_prepared(), _RESOURCES, ip="10.0.0.1", now=100.0)


def test_cpu_time_is_added_up_and_never_falls() -> None:
    time = CpuTime()
    first = Use(pod="p", container="1", started=100.0, cores=2.0)
    time.read([first], 110.0)
    assert (time.node, time.pods, time.containers) == (20.0, {"p": 20.0}, {"1": 20.0})
    time.read([Use(pod="p", container="1", started=100.0, cores=0.5)], 120.0)
    assert (time.node, time.containers) == (25.0, {"1": 25.0})
    time.read([first], 115.0)
    assert time.containers == {"1": 25.0}, "the clock was set back"
    time.read([Use(pod="p", container="2", started=118.0, cores=1.0)], 120.0)
    assert (time.node, time.pods, time.containers) == (27.0, {"p": 27.0}, {"2": 2.0}), "a restart"
    time.read([], 130.0)
    assert (time.node, time.pods, time.containers) == (27.0, {}, {})


def test_the_resource_metrics_of_a_node() -> None:
    resources = ResourceMetrics()
    text = resources.read([(_pod(), _running()), (new_pod("waits"), _prepared())], 110.0).decode()
    for line in (
        "# HELP node_memory_working_set_bytes [STABLE] Current working set of the node in bytes",
        "# TYPE container_cpu_usage_seconds_total counter",
        "# TYPE pod_memory_working_set_bytes gauge",
    ):
        assert line in text.splitlines()
    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): (sample.value, sample.timestamp)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }

    def of(**labels: str) -> tuple[tuple[str, str], ...]:
        return tuple(sorted(labels.items()))

    assert samples == {
        ("container_cpu_usage_seconds_total", of(**_OF_C)): (5.0, 110.0),
        ("container_memory_working_set_bytes", of(**_OF_C)): (1024.0, 110.0),
        ("container_swap_usage_bytes", of(**_OF_C)): (0.0, 110.0),
        ("container_start_time_seconds", of(**_OF_C)): (100.0, None),
        ("pod_cpu_usage_seconds_total", of(**_OF_A)): (5.0, 110.0),
        ("pod_memory_working_set_bytes", of(**_OF_A)): (1024.0, 110.0),
        ("pod_swap_usage_bytes", of(**_OF_A)): (0.0, 110.0),
        ("node_cpu_usage_seconds_total", ()): (5.0, 110.0),
        ("node_memory_working_set_bytes", ()): (1024.0, 110.0),
        ("node_swap_usage_bytes", ()): (0.0, 110.0),
        ("resource_scrape_error", ()): (0.0, None),
    }


def _debugged() -> PodSandbox:
    return runtime.debug(_running(), ("d",), now=101.0)


_CRASHED = runtime.crash(_running(), now=110.0, exit_code=139)


@pytest.mark.parametrize(
    ("old", "new", "ended"),
    [
        (_prepared(), _running(), [("init_container", 0)]),
        (_running(), runtime.become_ready(_running()), []),
        (_running(), _CRASHED, [("container", 139)]),
        (_CRASHED, runtime.rerun(_CRASHED, ("c",), _RESOURCES, now=120.0), []),
        (_CRASHED, runtime.stop(_CRASHED, now=120.0), []),
        (_running(), runtime.restart(_running(), ("c",), _RESOURCES, now=110.0), [("container", 0)]),
        (_running(), runtime.stop(_running(), now=110.0, exit_code=3), [("container", 3)]),
        (_running(), _debugged(), []),
        (_debugged(), runtime.stop(_debugged(), now=110.0), [("container", 0), ("ephemeral_container", 0)]),
    ],
    ids=["start", "ready", "crash", "rerun", "stop crashed", "restart", "exit", "debug", "stop debugged"],
)
def test_which_runs_have_ended(old: PodSandbox, new: PodSandbox, ended: list[tuple[str, int]]) -> None:
    assert list(terminations(old, new)) == ended


def test_ended_runs_are_counted_by_type_exit_code_and_reason() -> None:
    def count(container_type: str, exit_code: str, reason: str) -> float:
        labels = {"container_type": container_type, "exit_code": exit_code, "reason": reason}
        return REGISTRY.get_sample_value("kubelet_terminated_containers_total", labels) or 0.0

    before = count("init_container", "0", "Completed"), count("container", "139", "Error")
    metrics.count_terminations(_prepared(), _running())
    metrics.count_terminations(_running(), _CRASHED)
    after = count("init_container", "0", "Completed"), count("container", "139", "Error")
    assert after == (before[0] + 1, before[1] + 1)
