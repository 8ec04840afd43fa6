"""The decisions of the updater."""

from __future__ import annotations

import pytest

from nominee.lab.vpa.policy import Policy
from nominee.lab.vpa.trace import ALL_CONTAINERS, Usage
from nominee.lab.vpa.updater import Action, Updater, recommend
from nominee.machinery.api.pb import core

BUSY = {ALL_CONTAINERS: Usage(cpu=1000)}
CALM = {ALL_CONTAINERS: Usage(cpu=87)}  # with the margin the 100m that the pods request


def replica(name: str, *, condition: tuple[str, str] | None = None, phase: str = "Running") -> core.Pod:
    pod = core.Pod()
    pod.metadata.name, pod.metadata.namespace, pod.metadata.uid = name, "default", f"uid-{name}"
    pod.metadata.ownerReferences.add(kind="ReplicaSet", name="web", uid="web", controller=True)
    container = pod.spec.containers.add(name="c")
    container.resources.requests["cpu"].string = "100m"
    pod.status.phase = phase
    if condition is not None:
        pod.status.conditions.add(type=condition[0], status="True", reason=condition[1])
    return pod


def actions(updater: Updater, pods: list[core.Pod], now: float = 0.0) -> list[Action]:
    return [decision.action for decision in updater.decide(pods, {"web": len(pods)}, BUSY, now)]


def test_half_of_the_replicas_are_resized_in_one_round() -> None:
    pods = [replica(name) for name in "abcd"]
    assert actions(Updater(Policy()), pods) == [Action.RESIZE, Action.RESIZE, Action.WAIT, Action.WAIT]


def test_a_pod_close_to_its_target_is_kept() -> None:
    decisions = Updater(Policy()).decide([replica("a"), replica("b")], {"web": 2}, CALM, 0.0)
    assert [decision.action for decision in decisions] == [Action.KEEP, Action.KEEP]


def test_the_patch_has_the_target() -> None:
    (decision, _) = Updater(Policy()).decide([replica("a"), replica("b")], {"web": 2}, BUSY, 0.0)
    assert decision.patch == {
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1150m"}, "limits": {}}}]}
    }


def test_a_limit_is_scaled_with_its_request_and_other_resources_stay() -> None:
    pod = replica("a")
    pod.spec.containers[0].resources.limits["cpu"].string = "200m"
    (container,), difference = recommend(pod, {"c": Usage(cpu=200, memory=2**30)}, 0.0)
    assert (container.requests, container.limits) == ({"cpu": "200m"}, {"cpu": "400m"})
    assert difference == pytest.approx(1.0)


def test_too_few_replicas_and_bare_pods_are_left_alone() -> None:
    bare = replica("bare")
    bare.metadata.ClearField("ownerReferences")
    assert actions(Updater(Policy()), [bare, replica("a")]) == [Action.WAIT, Action.WAIT]
    assert actions(Updater(Policy(min_replicas=1)), [replica("a")]) == [Action.RESIZE]


def test_a_terminating_pod_is_no_replica() -> None:
    gone = replica("a")
    gone.metadata.deletionTimestamp.seconds = 1
    assert actions(Updater(Policy()), [gone, replica("b")]) == [Action.WAIT]


@pytest.mark.parametrize(
    ("condition", "limit_seconds"),
    [(("PodResizePending", "Deferred"), 300.0), (("PodResizeInProgress", ""), 3600.0)],
)
def test_a_resize_that_takes_too_long_falls_back_to_eviction(
    condition: tuple[str, str], limit_seconds: float
) -> None:
    updater = Updater(Policy())
    pods = [replica("a", condition=condition), replica("b")]
    assert actions(updater, pods, 1000.0)[0] is Action.WAIT
    assert actions(updater, pods, 1000.0 + limit_seconds)[0] is Action.WAIT
    assert actions(updater, pods, 1000.5 + limit_seconds)[0] is Action.EVICT


def test_the_time_starts_again_with_the_next_resize() -> None:
    updater = Updater(Policy())
    deferred = [replica("a", condition=("PodResizePending", "Deferred")), replica("b")]
    actions(updater, deferred, 0.0)
    actions(updater, [replica("a"), replica("b")], 200.0)
    assert actions(updater, deferred, 301.0)[0] is Action.WAIT


@pytest.mark.parametrize("condition", [("PodResizePending", "Infeasible"), ("PodResizeInProgress", "Error")])
def test_a_resize_that_failed_is_evicted_at_once(condition: tuple[str, str]) -> None:
    assert actions(Updater(Policy()), [replica("a", condition=condition), replica("b")])[0] is Action.EVICT


def test_no_eviction_without_a_replica_to_spare() -> None:
    pods = [replica(name, condition=("PodResizePending", "Infeasible")) for name in "ab"]
    assert actions(Updater(Policy()), pods) == [Action.EVICT, Action.WAIT]
    pods[1].status.phase = "Pending"
    assert actions(Updater(Policy()), pods) == [Action.WAIT, Action.WAIT]


def test_a_refused_resize_falls_back_to_eviction() -> None:
    pods = [replica("a"), replica("b")]
    updater = Updater(Policy())
    first, second = updater.decide(pods, {"web": 2}, BUSY, 0.0)
    assert [first.action, second.action] == [Action.RESIZE, Action.WAIT]
    assert updater.resize_failed(first, pods[0], "Invalid").action is Action.EVICT
