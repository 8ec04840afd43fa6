"""How many evictions a PodDisruptionBudget allows, and when a DisruptionTarget condition is stale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from nominee.controllers.disruption.budget import (
    Scale,
    SyncError,
    budget_events,
    expected_and_desired,
    failed_status,
    not_deleted,
    not_deleted_event,
    recheck_seconds,
    stale_disruption,
    status_of,
    unmanaged_pods,
    without_stale_disruption,
)
from nominee.machinery.api.objects import ObjectKey, get_condition
from nominee.machinery.api.pb import core, policy
from nominee.machinery.runtime.clock import to_time
from tests.controllers.builders import EPOCH, budget, owned_by, pod, stamp

NOW = to_time(float(EPOCH + 1000))
WEB = {"app": "web"}
MINE = [owned_by("set")]
KEY = ObjectKey("default", "web")


def _pods(count: int, *, ready: int, owner: str = "set") -> list[core.Pod]:
    owners = [owned_by(owner)] if owner else []
    return [
        pod(f"{owner}{n}", uid=f"{owner}{n}", labels=WEB, owners=owners, ready=n < ready)
        for n in range(count)
    ]


def _scales(pods: Sequence[core.Pod], replicas: int | None) -> dict[str, Scale | None]:
    return {p.metadata.uid: Scale(p.metadata.ownerReferences[0].uid, replicas, "jobs.batch") for p in pods
            if p.metadata.ownerReferences}  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "replicas", "expected", "desired"),
    [
        ({"minAvailable": 2}, 5, 3, 2),  # an integer compares with the pods that there are
        ({"minAvailable": "50%"}, 5, 5, 3),  # rounded up
        ({"minAvailable": "100%"}, 5, 5, 5),
        ({"maxUnavailable": 1}, 5, 5, 4),
        ({"maxUnavailable": "30%"}, 5, 5, 3),  # 1.5 rounded up to 2
        ({"maxUnavailable": 9}, 5, 5, 0),
        ({"maxUnavailable": "0%"}, 5, 5, 5),
        ({}, 5, 0, 0),
    ],
)
def test_expected_and_desired_pods(
    spec: Mapping[str, Any], replicas: int, expected: int, desired: int
) -> None:
    pods = _pods(3, ready=3)
    assert expected_and_desired(budget(**spec), pods, _scales(pods, replicas)) == (expected, desired)


def test_scales_of_several_controllers_add_up_and_bare_pods_do_not_count() -> None:
    pods = [*_pods(2, ready=2), *_pods(1, ready=1, owner="other"), *_pods(2, ready=2, owner="")]
    assert expected_and_desired(budget(maxUnavailable=1), pods, _scales(pods, 4)) == (8, 7)
    assert unmanaged_pods(budget(maxUnavailable=1), pods) == ["0", "1"]
    assert unmanaged_pods(budget(minAvailable="10%"), pods) == ["0", "1"]
    assert unmanaged_pods(budget(minAvailable=1), pods) == []


def test_the_event_about_pods_without_a_controller_shows_the_selector_as_go_prints_it() -> None:
    of = budget(maxUnavailable=1, labels={"b": "2", "a": "1"})
    of.spec.selector.matchExpressions.add(key="tier", operator="In", values=["front", "back"])
    (event,) = budget_events(of, _pods(1, ready=1, owner=""))
    shown = (
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]"
        "LabelSelectorRequirement{LabelSelectorRequirement{Key:tier,Operator:In,Values:[front back],},},}"
    )
    assert event.reason == "UnmanagedPods"
    assert event.note.startswith(f"Pods selected by this PodDisruptionBudget (selector: {shown}) were found")


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (None, 'found no controllers for pod "set0"'),
        (Scale("set", None, "jobs.batch"), "jobs.batch does not implement the scale subresource"),
    ],
)
def test_a_budget_without_a_scale_cannot_be_computed(scale: Scale | None, message: str) -> None:
    pods = _pods(1, ready=1)
    with pytest.raises(SyncError) as error:
        status_of(budget(maxUnavailable=1), pods, {"set0": scale}, NOW)
    assert str(error.value) == message
    old = {"disruptionsAllowed": 3, "currentHealthy": 4, "observedGeneration": 7}
    status = failed_status(budget(maxUnavailable=1, status=old), message, NOW)
    assert (status.disruptionsAllowed, status.currentHealthy, status.observedGeneration) == (0, 4, 7)
    row = get_condition(status.conditions, "DisruptionAllowed")
    assert row is not None
    assert (row.status, row.reason, row.message, row.observedGeneration) == (
        "False", "SyncFailed", message, 7,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("of", "pods", "allowed", "reason"),
    [
        (budget(minAvailable=2), _pods(3, ready=3), 1, "SufficientPods"),
        (budget(minAvailable=2), _pods(3, ready=2), 0, "InsufficientPods"),
        (budget(minAvailable=2), _pods(3, ready=0), 0, "InsufficientPods"),
        (budget(minAvailable=0), [], 0, "InsufficientPods"),
        (budget(maxUnavailable=1), _pods(3, ready=3), 1, "SufficientPods"),
    ],
)
def test_allowed_disruptions(
    of: policy.PodDisruptionBudget, pods: list[core.Pod], allowed: int, reason: str
) -> None:
    status = status_of(of, pods, _scales(pods, 3), NOW)
    row = get_condition(status.conditions, "DisruptionAllowed")
    assert row is not None
    assert (status.disruptionsAllowed, row.reason) == (allowed, reason)
    assert row.status == ("True" if allowed else "False")
    assert (status.observedGeneration, row.observedGeneration) == (1, 1)


def test_the_condition_changes_its_time_only_with_its_status() -> None:
    of, pods = budget(minAvailable=2), _pods(3, ready=3)
    of.status.CopyFrom(status_of(of, pods, {}, to_time(float(EPOCH))))
    assert of.status.conditions[0].lastTransitionTime.seconds == EPOCH
    assert status_of(of, pods, {}, NOW) == of.status
    worse = status_of(of, pods[:2], {}, NOW)
    assert worse.conditions[0].lastTransitionTime == NOW
    assert len(worse.conditions) == 1


def test_an_allowed_eviction_counts_for_two_minutes_or_until_the_pod_is_gone() -> None:
    pods = _pods(3, ready=3)
    pods.append(pod("ending", uid="ending", labels=WEB, deleted=True, ready=True))
    marked = {"set0": stamp(950), "set1": stamp(800), "gone": stamp(999), "ending": stamp(999)}
    of = budget(minAvailable=1, status={"disruptedPods": marked})
    status = status_of(of, pods, {}, NOW)
    assert set(status.disruptedPods) == {"set0"}
    assert (status.expectedPods, status.currentHealthy, status.disruptionsAllowed) == (4, 2, 1)
    assert [p.metadata.name for p in not_deleted(of, pods, NOW.seconds)] == ["set1"]
    assert recheck_seconds(status, NOW.seconds) == 71.0
    assert recheck_seconds(policy.PodDisruptionBudgetStatus(), NOW.seconds) is None


def _target(since: int, **more: str) -> list[dict[str, str]]:
    return [{"type": "DisruptionTarget", "status": "True", "lastTransitionTime": stamp(since), **more}]


@pytest.mark.parametrize(
    ("of", "wait"),
    [
        (pod(), None),
        (pod(conditions=_target(900)), 20.0),
        (pod(conditions=_target(0)), 0.0),
        (pod(conditions=_target(0), deleted=True), None),
        (pod(conditions=_target(0), phase="Failed"), None),
        (pod(conditions=_target(0, reason="TerminationByKubelet")), None),
        (pod(conditions=[{"type": "DisruptionTarget", "status": "False"}]), None),
    ],
)
def test_when_a_disruption_target_is_stale(of: core.Pod, wait: float | None) -> None:
    assert stale_disruption(of, NOW.seconds) == wait


def test_a_disruption_target_that_is_reset() -> None:
    of = pod(conditions=_target(0, reason="EvictionByEvictionAPI", message="Eviction API: evicting"))
    of.metadata.generation = 3
    new = without_stale_disruption(of, NOW)
    assert new is not None
    (condition,) = new.status.conditions
    assert (condition.status, condition.reason, condition.message) == ("False", "", "")
    assert (condition.observedGeneration, condition.lastTransitionTime) == (3, NOW)
    assert without_stale_disruption(new, NOW) is None


def test_the_event_about_a_pod_that_was_not_deleted_has_the_namespace_twice() -> None:
    event = not_deleted_event(budget(minAvailable=1))
    note = "Pod was expected by PDB default/default to be deleted but it wasn't"
    assert (event.reason, event.note) == ("NotDeleted", note)
