"""Options, back-off, drainability, budgets, evictions and limits."""

from __future__ import annotations

import anyio
import click
import pytest

from nominee.autoscaler.__main__ import main
from nominee.autoscaler.actuation.eviction import EVICTION_RETRY_SECONDS
from nominee.autoscaler.options import Compat, Options, Range
from nominee.autoscaler.planning.node_groups.backoff import NodeGroupBackoff
from nominee.autoscaler.planning.objects.observation import ControllerKey
from nominee.autoscaler.planning.objects.pdb_tracker import RemainingPdbTracker
from nominee.autoscaler.planning.scale_down.drainability import DrainContext, pods_to_move
from nominee.autoscaler.planning.scale_up import expander
from nominee.autoscaler.planning.scale_up.plan import ScaleUpResult
from nominee.machinery.api.pb import core, policy
from nominee.machinery.features.gates import Version
from nominee.machinery.runtime.clock import FakeClock
from tests.autoscaler.builders import Started, autoscaler, new_world, node, pod
from tests.autoscaler.golden import from_flags

NOW = FakeClock().now()


def test_flags_are_parsed_in_upstreams_format() -> None:
    options = from_flags(
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
    assert (options.scan_interval, options.scale_down_unneeded_time) == (0.2, 90.0)
    assert (options.cores_total, options.compat) == (Range(2, 10), Compat.V1_36)
    assert options.bypassed_scheduler_names == ("a", "b")
    assert options.balance_similar_node_groups is True
    assert options.scale_down_utilization_threshold == 0.7


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
def test_an_error_names_the_invalid_flag(flag: str, text: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        main.make_context("autoscaler", [f"--{flag}", text])
    assert f"--{flag}" in caught.value.format_message()


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


def test_a_back_off_doubles_up_to_a_maximum_and_is_reset() -> None:
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
    made = pod(new_world(FakeClock(), target=0), "p", "100m", on="n1")
    for key, text in annotations.items():
        made.metadata.annotations[f"cluster-autoscaler.kubernetes.io/{key.replace('_', '-')}"] = text
    return made


def _local(medium: str = "") -> core.Pod:
    made = _pod()
    made.spec.volumes.add(name="v").volumeSource.emptyDir.medium = medium
    return made


def _owned_by(kind: str, api_version: str = "apps/v1", **annotations: str) -> core.Pod:
    made = _pod(**annotations)
    made.metadata.ownerReferences[0].kind = kind
    made.metadata.ownerReferences[0].apiVersion = api_version
    return made


def _with_volumes(names: str) -> core.Pod:
    made = _pod(safe_to_evict_local_volumes=names)
    for name in ("v", "w"):
        made.spec.volumes.add(name=name).volumeSource.emptyDir.medium = ""
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
        pytest.param(
            _owned_by("ReplicationController"), "p/ControllerNotFound", id="its owner does not exist"
        ),
        pytest.param(_owned_by("Custom"), "p/NotReplicated", id="of a custom controller"),
        pytest.param(_owned_by("StatefulSet"), "", id="of a stateful set"),
        pytest.param(_pod(safe_to_evict="false"), "p/NotSafeToEvictAnnotation", id="not safe to evict"),
        pytest.param(_local(), "p/LocalStorageRequested", id="local storage"),
        pytest.param(_local("Memory"), "", id="storage in memory"),
        pytest.param(_with_volumes("v,w"), "", id="storage that may be lost"),
        pytest.param(_with_volumes("v, w"), "p/LocalStorageRequested", id="a space is part of a name"),
        pytest.param(_owned_by("StatefulSet", "apps.example.com/v1"), "", id="of another group's set"),
        pytest.param(_owned_by("DaemonSet"), "p/ControllerNotFound", id="its daemon set does not exist"),
        pytest.param(_owned_by("DaemonSet", "apps.example.com/v1"), "", id="of another group's daemon set"),
        pytest.param(_owned_by("Job", "batch/v1"), "p/ControllerNotFound", id="its job does not exist"),
        pytest.param(_owned_by("Job", "batch/v1", daemonset_pod="true"), "", id="is treated as a daemon"),
    ],
)
def test_which_pods_block_the_removal_of_their_node(made: core.Pod, blocked: str) -> None:
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


@pytest.mark.parametrize(
    ("kind", "replicas", "blocked"),
    [
        ("ReplicaSet", 2, ""),
        ("ReplicaSet", 1, "p/MinReplicasReached"),
        ("ReplicationController", 1, "p/MinReplicasReached"),
        ("StatefulSet", 1, ""),
    ],
)
def test_a_minimum_of_replicas_holds_for_all_but_stateful_sets(
    kind: str, replicas: int, blocked: str
) -> None:
    context = DrainContext(
        options=Options(min_replica_count=2),
        budgets=RemainingPdbTracker(()),
        controllers={ControllerKey(kind, "default", "web"): replicas},
        now=NOW,
    )
    assert pods_to_move(context, [_owned_by(kind)]).blocked_by == blocked


def test_a_kube_system_pod_without_a_budget_blocks_for_an_hour() -> None:
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


async def test_an_exhausted_budget_blocks_the_removal_of_the_next_node() -> None:
    world = new_world(FakeClock(), target=3)
    for name in ("n1", "n2", "n3"):
        node(world, name)
    budget = policy.PodDisruptionBudget()
    budget.metadata.name, budget.metadata.namespace = "b", "default"
    budget.spec.selector.matchLabels["app"] = "web"
    budget.status.disruptionsAllowed = 1
    world.budgets["default", "b"] = budget
    for name, on in (("p1", "n1"), ("p2", "n1"), ("p3", "n2")):
        pod(world, name, "100m", on=on).metadata.labels["app"] = "web"
    it = autoscaler(world, Compat.FIXED)
    await it.run_once()
    # n3 is empty and comes first; n1's two pods exhaust the budget, so that n2 cannot be removed.
    assert it.state.planner.unneeded_names() == ["n1", "n3"]
    assert str(it.state.planner.unremovable.reasons["n2"]) == "BlockedByPod(p3/NotEnoughPdb)"


async def test_an_eviction_that_a_budget_forbids_is_retried_until_the_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FakeClock()
    world = new_world(clock, target=2)
    node(world, "n1")
    node(world, "n2")
    pod(world, "busy", "1200m", on="n2")
    pod(world, "p", "100m", on="n1").metadata.labels["app"] = "web"
    started: Started = []
    it = autoscaler(world, Compat.FIXED, started)
    await it.run_once()
    clock.set(clock.now() + 61)
    assert (await it.run_once()).drained == ["n1"]
    budget = policy.PodDisruptionBudget()
    budget.metadata.name, budget.metadata.namespace = "b", "default"
    budget.spec.selector.matchLabels["app"] = "web"
    budget.status.disruptionsAllowed = 1
    world.budgets["default", "b"] = budget
    attempts = 0
    original = world.evict

    async def refuse(pod: core.Pod, grace_seconds: int) -> None:
        nonlocal attempts
        attempts += 1
        budget.status.disruptionsAllowed = 0
        await original(pod, grace_seconds)

    monkeypatch.setattr(world, "evict", refuse)
    async with anyio.create_task_group() as tasks:
        for run in started:
            tasks.start_soon(run)
        await clock.advance(300)
    assert attempts == 120 / EVICTION_RETRY_SECONDS
    assert world.cloud_deleted == []
    assert world.taints() == {"n1": ["DeletionCandidateOfClusterAutoscaler:PreferNoSchedule"]}
    assert "failed to drain and delete node" in world.events[-1].message


async def test_max_nodes_total_is_the_reason_in_the_pods_events() -> None:
    world = new_world(FakeClock(), target=1)
    node(world, "n1")
    pod(world, "full", "1900m", on="n1")
    pod(world, "waits", "1500m", unschedulable=True)
    result = await autoscaler(world, Compat.FIXED, max_nodes_total=1).run_once()
    assert result.scale_up.result is ScaleUpResult.LIMITED
    messages = {event.reason: event.message for event in world.events}
    assert messages["NotTriggerScaleUp"] == (
        "pod didn't trigger scale-up: max total nodes in cluster reached"
    )
    assert "MaxNodesTotalReached" in messages


async def test_the_order_in_which_objects_are_listed_does_not_matter() -> None:
    answers = []
    for names in (("n1", "n2", "n3"), ("n3", "n1", "n2")):
        world = new_world(FakeClock(), target=3)
        for name in names:
            node(world, name)
            pod(world, f"p-{name}", "300m", on=name)
        it = autoscaler(world, Compat.FIXED)
        await it.run_once()
        world.clock.set(world.clock.now() + 61)
        answers.append(((await it.run_once()).drained, it.state.planner.unneeded_names()))
    assert answers[0] == answers[1]
