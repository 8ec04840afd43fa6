"""The resize metrics under upstream's names. Source: KEP-1287, "Instrumentation"; kubelet 1.36."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from nominee.kubelet.allocation.resize_operations import operations
from nominee.kubelet.instructions import Actuated, Evaluated, ResizeRequested
from nominee.kubelet.node.summary import memory_in_use
from nominee.kubelet.resources.pod_resources import PodResources
from nominee.kubelet.resources.requirements import Requirements
from nominee.kubelet.shell import metrics
from tests.kubelet.executor import Executor, container, new_pod, node_object, resized, uid


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def one(**quantities: dict[str, str]) -> PodResources:
    return PodResources((("main", Requirements.from_json(quantities)),))


@pytest.mark.parametrize(
    ("before", "after", "want"),
    [
        (one(requests={"cpu": "1"}), one(requests={"cpu": "1000m"}), []),
        (one(requests={"cpu": "1"}), one(requests={"cpu": "2"}), [("cpu", "requests", "increase")]),
        (one(requests={"cpu": "2"}), one(requests={"cpu": "1"}), [("cpu", "requests", "decrease")]),
        (one(), one(limits={"memory": "1Gi"}), [("memory", "limits", "add")]),
        (one(limits={"memory": "1Gi"}), one(limits={"memory": "0"}), [("memory", "limits", "remove")]),
        (one(requests={"example.com/gpu": "1"}), one(requests={"example.com/gpu": "2"}), []),
        (
            one(requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "2", "memory": "2Gi"}),
            one(requests={"cpu": "2", "memory": "512Mi"}, limits={"cpu": "4", "memory": "1Gi"}),
            [
                ("memory", "requests", "decrease"),
                ("memory", "limits", "decrease"),
                ("cpu", "requests", "increase"),
                ("cpu", "limits", "increase"),
            ],
        ),
    ],
)
def test_each_resource_of_each_container_is_one_requested_resize(
    before: PodResources, after: PodResources, want: list[tuple[str, str, str]]
) -> None:
    seen = list(operations(before, after))
    assert [(each.resource, each.requirement, each.operation) for each in seen] == want


def test_a_resize_is_counted_once_however_often_it_is_tried() -> None:
    here = Executor(node_object(cpu="2", pods="10"))
    here.list_pods()
    for pod in (new_pod("a", container("main", cpu="1")), new_pod("b", container("main", cpu="1"))):
        here.store(pod)
        here.observe(pod.metadata.name)
    here.work()
    here.store(resized(here.api["a"], "main", cpu="2"))
    here.observe("a")
    here.work()
    here.retry()
    requested = [each for each in here.noted if isinstance(each, ResizeRequested)]
    assert requested == [ResizeRequested("cpu", "requests", "increase")]
    assert not [each for each in here.noted if isinstance(each, Actuated)]
    here.api.pop("b")
    here.observe("b")
    here.work()
    assert [each.success for each in here.noted if isinstance(each, Actuated)] == [True]
    accepted = [each for each in here.noted if isinstance(each, Evaluated) and each.operation == "resize"][-1]
    assert (accepted.admitted, accepted.was_deferred, accepted.trigger) == (True, True, "pods_removed")


@pytest.mark.parametrize("operation", ["add", "resize"])
def test_preempted_pods_are_counted_by_the_resource_that_was_short(operation: str) -> None:
    """Kubelet 1.36, CriticalPodAdmissionHandler: of several resources the first one."""
    here = Executor(node_object(cpu="2", memory="2Gi", pods="10"))
    here.list_pods()
    critical = new_pod("k", container("main", cpu="100m", memory="100Mi"))
    critical.spec.priority = 2_000_000_000
    pods = [new_pod(name, container("main", cpu="900m", memory="900Mi")) for name in ("a", "b")]
    for pod in [*pods, *([critical] if operation == "resize" else [])]:
        here.store(pod)
        here.observe(pod.metadata.name)
    here.work()
    if operation == "resize":
        here.store(resized(here.api["k"], "main", cpu="2", memory="2Gi"))
    else:
        critical.spec.containers[0].CopyFrom(container("main", cpu="2", memory="2Gi"))
        here.store(critical)
    here.observe("k")
    before = value("kubelet_preemptions_total", preemption_signal="cpu")
    evaluated = [each for each in here.noted if isinstance(each, Evaluated)][-1]
    metrics.count(evaluated)
    assert (evaluated.uid, evaluated.operation, evaluated.admitted) == (uid("k"), operation, True)
    assert value("kubelet_preemptions_total", preemption_signal="cpu") == before + 2


def test_names_and_labels() -> None:
    labels = {"resource": "cpu", "requirement": "limits", "operation": "add"}
    before = value("kubelet_container_requested_resizes_total", **labels)
    metrics.count_request(ResizeRequested("cpu", "limits", "add"))
    assert value("kubelet_container_requested_resizes_total", **labels) == before + 1

    before = value("kubelet_pod_resize_duration_milliseconds_sum", success="false")
    metrics.observe(Actuated(0.25, success=False))
    assert value("kubelet_pod_resize_duration_milliseconds_sum", success="false") == before + 250

    before = value("kubelet_pod_infeasible_resizes_total", reason_detail="swap_limitation")
    metrics.count(Evaluated("u", "resize", False, "Infeasible", "", detail="swap_limitation"))
    assert value("kubelet_pod_infeasible_resizes_total", reason_detail="swap_limitation") == before + 1

    before = value("kubelet_pod_deferred_accepted_resizes_total", retry_trigger="pods_removed")
    metrics.count(Evaluated("u", "resize", True, was_deferred=True, trigger="pods_removed"))
    assert value("kubelet_pod_deferred_accepted_resizes_total", retry_trigger="pods_removed") == before + 1


def test_the_gauges_count_conditions() -> None:
    here = Executor(node_object(cpu="2", pods="10"))
    here.list_pods()
    here.store(new_pod("a", container("main", cpu="1")))
    here.observe("a")
    here.work()
    here.store(resized(here.api["a"], "main", cpu="3"))
    here.observe("a")
    metrics.measure([here.node], 1)
    assert value("kubelet_pod_pending_resizes", reason="deferred") == 1
    assert value("kubelet_pod_pending_resizes", reason="infeasible") == 0
    here.store(resized(here.api["a"], "main", cpu="2"))
    here.observe("a")
    metrics.measure([here.node], 1)
    assert value("kubelet_pod_pending_resizes", reason="deferred") == 0
    assert value("kubelet_pod_in_progress_resizes") == 1


def test_memory_in_use_is_what_the_annotation_says() -> None:
    pod = new_pod("a", container("one", memory="1Gi"), container("two", limits={"memory": "1Ki"}))
    here = Executor(node_object(cpu="2", memory="4Gi", pods="10"))
    here.list_pods()
    here.store(pod)
    here.observe("a")
    here.work()
    sandbox = here.runtime.sandboxes[uid("a")]
    assert memory_in_use(pod, sandbox, "one") == 0, "what is requested is not what is used"
    pod.metadata.annotations["nominee.dev/memory-usage"] = "1Mi"
    assert memory_in_use(pod, sandbox, "one") == 1 << 20
    assert memory_in_use(pod, sandbox, "two") == 1 << 10, "never above the limit in force"
    assert memory_in_use(pod, sandbox, "") == (1 << 20) + (1 << 10)
    assert memory_in_use(pod, None, "one") == 0


@pytest.mark.parametrize(
    ("reason", "label"),
    [
        ("OutOfcpu", "OutOfcpu"),
        ("OutOfpods", "OutOfpods"),
        ("OutOfexample.com/gpu", "OutOfExtendedResources"),
        ("OutOfhugepages-2Mi", "OutOfExtendedResources"),
        ("UnexpectedAdmissionError", "UnexpectedAdmissionError"),
        ("NodeAffinity", "Other"),
        ("TaintToleration", "Other"),
    ],
)
def test_a_rejection_is_counted_under_one_of_a_few_reasons(reason: str, label: str) -> None:
    """kubelet 1.36, recordAdmissionRejection: the label has few values, whatever resources exist."""
    before = value("kubelet_admission_rejections_total", reason=label)
    metrics.count(Evaluated("uid", "add", False, reason, ""))
    assert value("kubelet_admission_rejections_total", reason=label) == before + 1
