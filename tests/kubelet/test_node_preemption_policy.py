"""The node's preemption policy for resizes, as the kubelet obeys and reports it. Source: KEP-5836.

Each test names the section whose sentence it checks.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nominee.kubelet.events import NodeChanged
from nominee.kubelet.features import (
    Features,
    ResizePreemptionFlavour,
    StatusFeatures,
    features,
    status_features,
)
from nominee.kubelet.instructions import Evaluated
from nominee.kubelet.node.state import NodeSettings
from nominee.kubelet.resize.conditions import DEFERRED
from nominee.machinery.api.objects import get_condition
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from tests.kubelet.executor import (
    Executor,
    container,
    deleted,
    new_pod,
    node_object,
    resized,
)

GATE = "InPlacePodVerticalScalingSchedulerPreemption"
V1_37 = Version(1, 37)
CRITICAL = 2_000_000_000
OWNERS = ("autoscaling.k8s.io/cluster-autoscaler", "autoscaling.k8s.io/vpa-updater")
DISABLED = "PodResizePreemptionDisabled"


def gates(*, on: bool = True, version: Version = V1_37) -> Gates:
    return Gates("kubelet", version, {GATE: True} if on else {})


def known(*, on: bool = True, version: Version = V1_37) -> StatusFeatures:
    return status_features(version, gates(on=on, version=version))


def node_1(*owners: str) -> core.Node:
    """Return a node with 4 cpu and these owners of its policy."""
    node = node_object(cpu="4", memory="4Gi", pods="10")
    node.metadata.name = "node-1"
    node.spec.podPreemptionPolicy.disableResizePreemption.extend(owners)
    return node


def kubelet(
    *owners: str, features_on: Features | None = None, on: bool = True, version: Version = V1_37
) -> Executor:
    """Return a kubelet whose node has 2 of 4 cpu left: a and b run with 1 each."""
    made = Executor(
        node_1(*owners),
        NodeSettings(version=version, status=known(on=on, version=version)),
        features_on or features(version, gates(on=on, version=version)),
    )
    made.list_pods()
    for name in ("a", "b"):
        add(made, new_pod(name, container("main", cpu="1"), nodeName="node-1"))
    return made


def add(here: Executor, pod: core.Pod) -> None:
    here.store(pod)
    here.observe(pod.metadata.name)
    here.work()


def resize(here: Executor, pod: str, cpu: str) -> None:
    here.store(resized(here.api[pod], "main", cpu=cpu))
    here.observe(pod)
    here.work()


def set_policy(here: Executor, *owners: str) -> None:
    here.node_object = node_1(*owners)
    here.handle(NodeChanged(node=here.node_object))
    here.work()


def pending(here: Executor, pod: str) -> str:
    row = get_condition(here.api[pod].status.conditions, "PodResizePending")
    return "" if row is None else row.reason


def disabled(here: Executor, pod: str) -> core.PodCondition | None:
    return get_condition(here.api[pod].status.conditions, DISABLED)


def types(pod: core.Pod) -> list[str]:
    return [row.type for row in pod.status.conditions]


# "PodResizePreemptionDisabled Pod Condition"


def test_the_condition_is_set_with_the_deferral() -> None:
    """In the same status write: "upon deferring the resize"."""
    here = kubelet(OWNERS[0])
    writes = here.revision
    resize(here, "a", "4")
    assert here.revision == writes + 2, "the resize and one status"
    row = disabled(here, "a")
    assert row is not None
    assert (row.status, row.reason, row.message, row.observedGeneration) == (
        "True",
        "PreemptionDisabledByNodePolicy",
        "Preemption for in-place pod resize is disabled on node 'node-1' by preemption policy.",
        2,
    )
    assert row.lastTransitionTime.seconds == int(here.now)
    assert pending(here, "a") == DEFERRED
    assert disabled(here, "b") is None, "b asks for nothing"


def test_the_condition_keeps_its_transition_time() -> None:
    here = kubelet(OWNERS[0])
    resize(here, "a", "4")
    first = disabled(here, "a")
    here.pass_time(180.0)
    here.retry()
    resize(here, "a", "5")
    second = disabled(here, "a")
    assert first is not None
    assert second is not None
    assert (second.lastTransitionTime, second.observedGeneration) == (first.lastTransitionTime, 3)


def test_the_condition_is_cleared_when_the_policy_allows_preemption() -> None:
    """ "The Kubelet clears this condition when the node's preemption policy is updated"."""
    here = kubelet(OWNERS[0])
    resize(here, "a", "4")
    set_policy(here)
    assert disabled(here, "a") is None
    assert pending(here, "a") == DEFERRED, "the resize still waits"


def _allocate(here: Executor) -> None:
    here.store(deleted(here.api["b"], seconds=0))
    here.observe("b")
    here.work()
    here.observe("b")
    here.work()


def _revert(here: Executor) -> None:
    resize(here, "a", "1")


def _shrink(here: Executor) -> None:
    resize(here, "a", "2")


def _delete(here: Executor) -> None:
    here.store(deleted(here.api["a"]))
    here.observe("a")
    here.work()


@pytest.mark.parametrize("end", [_allocate, _revert, _shrink, _delete])
def test_the_condition_is_cleared_when_the_resize_is_resolved_or_cancelled(
    end: Callable[[Executor], None],
) -> None:
    here = kubelet(OWNERS[0])
    resize(here, "a", "4" if end is not _allocate else "3500m")
    assert disabled(here, "a") is not None
    seen: list[core.Pod] = []
    store = here.store

    def watched(pod: core.Pod) -> core.Pod:
        stored = store(pod)
        if pod.metadata.name == "a":
            seen.append(stored)
        return stored

    here.store = watched  # type: ignore[method-assign]
    end(here)
    assert DISABLED not in types(seen[-1])
    assert "PodResizePending" not in types(seen[-1])


def test_an_infeasible_resize_has_no_such_condition() -> None:
    """Only a deferred resize waits for room."""
    here = kubelet(OWNERS[0])
    here.api["a"].metadata.annotations["kubernetes.io/config.source"] = "file"
    resize(here, "a", "4")
    assert (pending(here, "a"), disabled(here, "a")) == ("Infeasible", None)


# "Kubelet-Scheduler Policy Coordination and Status Propagation"


def test_a_change_of_the_policy_reaches_pods_that_are_deferred_already() -> None:
    """ "If the preemption policy changes, the Kubelet updates the condition on already-Deferred pods"."""
    here = kubelet()
    for pod in ("a", "b"):
        resize(here, pod, "4")
        assert disabled(here, pod) is None
    set_policy(here, OWNERS[0])
    assert disabled(here, "a") is not None
    assert disabled(here, "b") is not None
    set_policy(here)
    assert disabled(here, "a") is None
    assert disabled(here, "b") is None


def test_a_deferred_resize_that_no_retry_will_look_at_is_reported_too() -> None:
    """Its request was reverted while the kubelet was down: PodResizePending stays, as recorded."""
    here = kubelet()
    resize(here, "a", "4")
    here.store(resized(here.api["a"], "main", cpu="1"))
    here.start_process()
    here.list_pods()
    here.work()
    assert here.node.queue == []
    assert pending(here, "a") == DEFERRED
    set_policy(here, OWNERS[0])
    assert disabled(here, "a") is not None


def test_a_restarted_kubelet_reports_the_policy_of_now() -> None:
    """The policy may change while the kubelet is down."""
    here = kubelet()
    resize(here, "a", "4")
    for owners in ((OWNERS[0],), ()):
        here.node_object = node_1(*owners)
        here.start_process()
        here.list_pods()
        here.work()
        assert (disabled(here, "a") is not None) is bool(owners)


def test_an_unrelated_change_of_the_node_causes_no_sync() -> None:
    here = kubelet(OWNERS[0])
    resize(here, "a", "4")
    noted = len(here.noted)
    changed = node_1(OWNERS[0])
    changed.metadata.labels["disk"] = "ssd"
    here.handle(NodeChanged(node=changed))
    assert here.noted[noted:] == []


# "Multiple Owner Support"


def test_one_owner_is_enough() -> None:
    """ "The Kubelet honors the policy if the list contains any entries"."""
    here = kubelet(*OWNERS)
    resize(here, "a", "4")
    before = disabled(here, "a")
    set_policy(here, OWNERS[1])
    assert disabled(here, "a") == before
    set_policy(here)
    assert disabled(here, "a") is None


# "Kubelet Preemption"


def critical(here: Executor) -> None:
    """Add a critical pod k with 1 cpu."""
    add(here, new_pod("k", container("main", cpu="1"), priority=CRITICAL, nodeName="node-1"))


def test_the_kubelet_preempts_for_the_resize_of_a_critical_pod() -> None:
    here = kubelet()
    critical(here)
    resize(here, "k", "3")
    assert pending(here, "k") == ""
    preempted = [pod for pod in ("a", "b") if here.node.pods[f"uid-{pod}"].failed]
    assert preempted == ["b"], "the later of equal victims"


def test_with_the_policy_the_kubelet_preempts_no_pod_for_a_resize() -> None:
    """ "the Kubelet marks the pod's resize as Deferred and sets PodResizePreemptionDisabled"."""
    here = kubelet(OWNERS[0])
    critical(here)
    resize(here, "k", "3")
    assert pending(here, "k") == DEFERRED
    assert disabled(here, "k") is not None
    assert not any(record.failed for record in here.node.pods.values())
    evaluated = [one for one in here.noted if isinstance(one, Evaluated)][-1]
    assert evaluated.reason == "OutOfcpu"


def test_once_the_policy_is_cleared_the_next_retry_preempts() -> None:
    """A node object triggers no retry (kubelet 1.36): the periodic one comes within three minutes."""
    here = kubelet(OWNERS[0])
    critical(here)
    resize(here, "k", "3")
    set_policy(here)
    assert pending(here, "k") == DEFERRED
    here.pass_time(180.0)
    here.retry()
    assert pending(here, "k") == ""
    assert any(record.failed for record in here.node.pods.values())


# "Policy Scope: Exclusivity to Pod Resize"


@pytest.mark.parametrize("flavour", ["kep", "1.37"])
def test_a_new_critical_pod_preempts_whatever_the_policy(flavour: ResizePreemptionFlavour) -> None:
    here = kubelet(OWNERS[0], features_on=features(V1_37, gates(), flavour))
    add(here, new_pod("k", container("main", cpu="3"), priority=CRITICAL, nodeName="node-1"))
    assert here.api["k"].status.phase == "Running"
    assert any(record.failed for record in here.node.pods.values())


# Kubernetes 1.37


def test_the_kubelet_of_1_37_leaves_preemption_for_a_resize_to_the_scheduler() -> None:
    """With the gate on, whatever the policy. Source: Kubernetes 1.37."""
    here = kubelet(features_on=features(V1_37, gates(), "1.37"))
    critical(here)
    resize(here, "k", "3")
    assert pending(here, "k") == DEFERRED
    assert disabled(here, "k") is None, "the node has no policy"
    assert not any(record.failed for record in here.node.pods.values())


def test_the_flavour_means_nothing_with_the_gate_off() -> None:
    here = kubelet(on=False, features_on=features(V1_37, gates(on=False), "1.37"))
    critical(here)
    resize(here, "k", "3")
    assert pending(here, "k") == ""


# "Version Skew Strategy", "Feature Enablement and Rollback"


@pytest.mark.parametrize(
    ("version", "on"), [(V1_37, False), (Version(1, 36), False), (Version(1, 34), False)]
)
def test_without_the_gate_a_kubelet_defers_and_knows_no_policy(version: Version, on: bool) -> None:
    """ "While an n-3 Kubelet correctly defers resizes, it does not recognize the new Node field"."""
    here = kubelet(OWNERS[0], version=version, on=on)
    critical(here)
    resize(here, "a", "4")
    assert pending(here, "a") == DEFERRED
    assert disabled(here, "a") is None
    resize(here, "k", "3")
    assert pending(here, "k") == "", "it preempts for critical pods as ever"


def test_an_n_3_kubelet_retries_when_room_is_made() -> None:
    """ "N-3 kubelet already marks resizes without enough capacity as Deferred and retries"."""
    here = kubelet(OWNERS[0], version=Version(1, 34), on=False)
    resize(here, "a", "3500m")
    assert pending(here, "a") == DEFERRED
    _allocate(here)
    assert pending(here, "a") == ""
    assert here.runtime.sandboxes["uid-a"].in_force().of("main").requests.get("cpu") == "3500m"


def test_the_gate_has_the_kep_s_name_too() -> None:
    assert Gates("kubelet", V1_37, {"SchedulerPreemptionForPodResize": True}).enabled(GATE)
    assert not Gates("kubelet", V1_37).enabled(GATE), "alpha in 1.37"
