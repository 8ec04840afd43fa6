"""Tables of the planners: flags, back-off, drainability, states over time, limits."""

from __future__ import annotations

import anyio
import pytest

from autoscaler.actuation.eviction import EVICTION_RETRY_SECONDS
from autoscaler.options import Compat, Options, Range, from_flags
from autoscaler.planning import expander
from autoscaler.planning.backoff import NodeGroupBackoff
from autoscaler.planning.drainability import DrainContext, pods_to_move
from autoscaler.planning.observation import ControllerKey
from autoscaler.planning.pdb_tracker import RemainingPdbTracker
from autoscaler.planning.scale_up import ScaleUpResult
from machinery.api.pb import core, policy
from machinery.features.gates import Version
from machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import Started, autoscaler, node, pod, world

NOW = FakeClock().now()


def test_flags_are_read_as_upstream_writes_them() -> None:
    found = from_flags(
        {
            "scan-interval": "200ms",
            "scale-down-unneeded-time": "1m30s",
            "cores-total": "2:10",
            "compat": "1.36",
            "bypassed-scheduler-names": "a,b",
            "balance-similar-node-groups": "true",
            "scale-down-utilization-threshold": "0.7",
        }
    )
    assert (found.scan_interval, found.scale_down_unneeded_time) == (0.2, 90.0)
    assert (found.cores_total, found.compat) == (Range(2, 10), Compat.V1_36)
    assert found.bypassed_scheduler_names == ("a", "b")
    assert found.balance_similar_node_groups is True
    assert found.scale_down_utilization_threshold == 0.7


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("scan-interval", "soon"),
        ("cores-total", "10:2"),
        ("scale-down-enabled", "maybe"),
        ("compat", "1.20"),
        ("no-such-flag", "1"),
    ],
)
def test_flags_that_make_no_sense_are_named(flag: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"--{flag}"):
        from_flags({flag: text})


@pytest.mark.parametrize(
    ("version", "compat"),
    [("1.34", Compat.V1_35), ("1.35", Compat.V1_35), ("1.36", Compat.V1_36), ("1.37", Compat.V1_36)],
)
def test_compat_follows_the_emulated_version(version: str, compat: Compat) -> None:
    assert Compat.of(Version.parse(version)) is compat


def test_unknown_expanders_are_refused() -> None:
    expander.check("most-pods,least-waste,random")
    with pytest.raises(ValueError, match="price"):
        expander.check("least-waste,price")


def test_backoff_doubles_up_to_a_limit_and_is_forgotten() -> None:
    it = NodeGroupBackoff(Options())
    assert it.backoff("g", 0.0, code="x", message="") == 300.0
    assert it.backoff("g", 10.0, code="x", message="") == 310.0, "several failures at once are one"
    assert it.status("g", 309.0) is not None
    assert it.status("g", 310.0) is None
    assert it.backoff("g", 400.0, code="x", message="") == 400.0 + 600.0
    assert it.backoff("g", 1001.0, code="x", message="") == 1001.0 + 1200.0
    assert it.backoff("g", 3000.0, code="x", message="") == 3000.0 + 1800.0, "the limit"
    it.remove_stale(3000.0 + 10_801.0)
    assert it.backoff("g", 20_000.0, code="x", message="") == 20_300.0


def _pod(**annotations: str) -> core.Pod:
    made = pod(world(FakeClock(), target=0), "p", "100m", on="n1")
    for key, text in annotations.items():
        made.metadata.annotations[f"cluster-autoscaler.kubernetes.io/{key.replace('_', '-')}"] = text
    return made


def _local(medium: str = "") -> core.Pod:
    made = _pod()
    made.spec.volumes.add(name="v").volumeSource.emptyDir.medium = medium
    return made


def _owned_by(kind: str) -> core.Pod:
    made = _pod()
    made.metadata.ownerReferences[0].kind = kind
    return made


def _bare() -> core.Pod:
    made = _pod()
    del made.metadata.ownerReferences[:]
    return made


def _in_kube_system() -> core.Pod:
    made = _pod()
    made.metadata.namespace = "kube-system"
    return made


@pytest.mark.parametrize(
    ("made", "blocked"),
    [
        pytest.param(_pod(), "", id="of a replica set"),
        pytest.param(_bare(), "p/NotReplicated", id="bare"),
        pytest.param(_owned_by("ReplicationController"), "p/ControllerNotFound", id="its owner is gone"),
        pytest.param(_owned_by("Custom"), "p/NotReplicated", id="of a custom controller"),
        pytest.param(_owned_by("StatefulSet"), "", id="of a stateful set"),
        pytest.param(_pod(safe_to_evict="false"), "p/NotSafeToEvictAnnotation", id="not safe to evict"),
        pytest.param(_local(), "p/LocalStorageRequested", id="local storage"),
        pytest.param(_local("Memory"), "", id="storage in memory"),
    ],
)
def test_which_pods_keep_their_node(made: core.Pod, blocked: str) -> None:
    context = DrainContext(
        options=Options(),
        budgets=RemainingPdbTracker(()),
        controllers={
            ControllerKey("ReplicaSet", "default", "web"): 3,
            ControllerKey("StatefulSet", "default", "web"): 3,
        },
        now=NOW,
    )
    assert pods_to_move(context, [made]).blocked_by == blocked


def test_pods_of_the_system_stay_for_an_hour_without_a_budget() -> None:
    def blocked(age: float) -> str:
        context = DrainContext(
            options=Options(),
            budgets=RemainingPdbTracker(()),
            controllers={ControllerKey("ReplicaSet", "kube-system", "web"): 3},
            now=NOW - 3600.0 + age,
        )
        return pods_to_move(context, [_in_kube_system()]).blocked_by

    assert blocked(3600.0) == "p/UnmovableKubeSystemPod"
    assert blocked(3601.0) == ""


async def test_a_budget_that_allows_one_makes_a_node_risky_and_is_spent() -> None:
    found = world(FakeClock(), target=3)
    for name in ("n1", "n2", "n3"):
        node(found, name)
    budget = policy.PodDisruptionBudget()
    budget.metadata.name, budget.metadata.namespace = "b", "default"
    budget.spec.selector.matchLabels["app"] = "web"
    budget.status.disruptionsAllowed = 1
    found.budgets["default", "b"] = budget
    for name, on in (("p1", "n1"), ("p2", "n1"), ("p3", "n2")):
        pod(found, name, "100m", on=on).metadata.labels["app"] = "web"
    it = autoscaler(found, Compat.FIXED)
    await it.run_once()
    # n3 is empty and goes first; n1's two pods spend the budget, so that n2 must stay.
    assert it.state.planner.unneeded() == ["n1", "n3"]
    assert str(it.state.planner.unremovable.reasons["n2"]) == "BlockedByPod(p3/NotEnoughPdb)"


async def test_an_eviction_that_a_budget_forbids_is_tried_again_and_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FakeClock()
    found = world(clock, target=2)
    node(found, "n1")
    node(found, "n2")
    pod(found, "busy", "1200m", on="n2")
    pod(found, "p", "100m", on="n1").metadata.labels["app"] = "web"
    started: Started = []
    it = autoscaler(found, Compat.FIXED, started)
    await it.run_once()
    clock.set(clock.now() + 61)
    assert (await it.run_once()).drained == ["n1"]
    budget = policy.PodDisruptionBudget()
    budget.metadata.name, budget.metadata.namespace = "b", "default"
    budget.spec.selector.matchLabels["app"] = "web"
    budget.status.disruptionsAllowed = 1
    found.budgets["default", "b"] = budget
    attempts = 0
    original = found.evict

    async def refuse(pod: core.Pod, grace_seconds: int) -> None:
        nonlocal attempts
        attempts += 1
        budget.status.disruptionsAllowed = 0
        await original(pod, grace_seconds)

    monkeypatch.setattr(found, "evict", refuse)
    async with anyio.create_task_group() as tasks:
        for run in started:
            tasks.start_soon(run)
        await clock.advance(300)
    assert attempts == 120 / EVICTION_RETRY_SECONDS
    assert found.cloud_deleted == []
    assert found.taints() == {"n1": ["DeletionCandidateOfClusterAutoscaler:PreferNoSchedule"]}
    assert "failed to drain and delete node" in found.events[-1].message


async def test_the_limit_of_all_nodes_is_an_event_of_pods() -> None:
    found = world(FakeClock(), target=1)
    node(found, "n1")
    pod(found, "full", "1900m", on="n1")
    pod(found, "waits", "1500m", unschedulable=True)
    result = await autoscaler(found, Compat.FIXED, max_nodes_total=1).run_once()
    assert result.scale_up.result is ScaleUpResult.LIMITED
    messages = {event.reason: event.message for event in found.events}
    assert messages["NotTriggerScaleUp"] == (
        "pod didn't trigger scale-up: max total nodes in cluster reached"
    )
    assert "MaxNodesTotalReached" in messages


async def test_equal_clusters_get_equal_answers() -> None:
    """Whatever the order in which objects are listed."""
    answers = []
    for names in (("n1", "n2", "n3"), ("n3", "n1", "n2")):
        found = world(FakeClock(), target=3)
        for name in names:
            node(found, name)
            pod(found, f"p-{name}", "300m", on=name)
        it = autoscaler(found, Compat.FIXED)
        await it.run_once()
        found.clock.set(found.clock.now() + 61)
        answers.append(((await it.run_once()).drained, it.state.planner.unneeded()))
    assert answers[0] == answers[1]
