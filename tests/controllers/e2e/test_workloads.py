"""Replica sets and disruption budgets over real processes."""

from __future__ import annotations

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import controller_of, get_condition
from nominee.machinery.api.pb import apps, core
from nominee.machinery.runtime.clock import SystemClock, from_time
from tests.controllers.builders import budget, node, pod, replica_set
from tests.controllers.e2e.support import Lab, running
from tests.support.cluster import Cluster
from tests.support.eventually import eventually

CREATED = "controllers.replica_set.create."


async def _scale(lab: Lab, replicas: int) -> None:
    await lab.client.patch(kinds.REPLICA_SET, "web", "default", {"spec": {"replicas": replicas}})


def _owned(pods: list[core.Pod], owner: apps.ReplicaSet) -> list[core.Pod]:
    return [p for p in pods if (o := controller_of(p)) is not None and o.uid == owner.metadata.uid]


async def test_pods_are_created_scaled_and_counted(cluster: Cluster) -> None:
    async with running(cluster, "--node-monitor-grace-period", "1h") as lab:
        await lab.create(node())
        made = await lab.create(replica_set(replicas=3))
        pods = await lab.listed(kinds.POD, lambda found: len(found) == 3)
        assert all(p.metadata.name.startswith("web-") for p in pods)
        assert len(_owned(pods, made)) == 3
        for each in pods:
            await lab.run_pod(each, "n1", ready=each is not pods[0])
        counted = await lab.object(kinds.REPLICA_SET, "web", lambda s: s.status.readyReplicas == 2)
        assert (counted.status.replicas, counted.status.availableReplicas) == (3, 2)
        assert counted.status.fullyLabeledReplicas == 3
        assert counted.status.observedGeneration == 1
        created = await lab.listed(
            kinds.EVENTS_EVENT, lambda found: sum(e.reason == "SuccessfulCreate" for e in found) == 3
        )
        notes = {e.note for e in created if e.reason == "SuccessfulCreate"}
        assert notes == {f"Created pod: {p.metadata.name}" for p in pods}

        await _scale(lab, 2)
        left = await lab.listed(
            kinds.POD, lambda found: any(p.metadata.HasField("deletionTimestamp") for p in found)
        )
        going = [p.metadata.name for p in left if p.metadata.HasField("deletionTimestamp")]
        assert going == [pods[0].metadata.name]  # the one that is not ready


async def test_a_quota_limits_pods_until_one_is_deleted(cluster: Cluster) -> None:
    async with running(cluster, "--node-monitor-grace-period", "1h") as lab:
        bounds = core.ResourceQuota()
        bounds.metadata.name, bounds.metadata.namespace = "q", "default"
        bounds.spec.hard["pods"].string = "1"
        await lab.create(pod("first"), bounds)
        await lab.object(
            kinds.RESOURCE_QUOTA,
            "q",
            lambda q: "pods" in q.status.used and q.status.used["pods"].string == "1",
        )
        with pytest.raises(StatusError, match="exceeded quota: q, requested: pods=1, used: pods=1, limited"):
            await lab.client.create(pod("second"))
        await lab.client.delete(kinds.POD, "first", "default", grace_period_seconds=0)
        await lab.object(kinds.RESOURCE_QUOTA, "q", lambda q: q.status.used["pods"].string == "0")
        await lab.create(pod("second"))


async def test_a_pod_that_becomes_terminating_moves_to_that_quota(cluster: Cluster) -> None:
    async with running(cluster, "--node-monitor-grace-period", "1h") as lab:
        for scope in ("Terminating", "NotTerminating"):
            bounds = core.ResourceQuota()
            bounds.metadata.name, bounds.metadata.namespace = scope.lower(), "default"
            bounds.spec.hard["pods"].string = "5"
            bounds.spec.scopes.append(scope)
            await lab.create(bounds)
            await lab.object(kinds.RESOURCE_QUOTA, scope.lower(), lambda q: "pods" in q.status.used)
        await lab.create(pod("p"))
        await lab.object(
            kinds.RESOURCE_QUOTA, "notterminating", lambda q: q.status.used["pods"].string == "1"
        )
        await lab.client.patch(kinds.POD, "p", "default", {"spec": {"activeDeadlineSeconds": 3600}})
        await lab.object(
            kinds.RESOURCE_QUOTA, "notterminating", lambda q: q.status.used["pods"].string == "0"
        )
        await lab.object(kinds.RESOURCE_QUOTA, "terminating", lambda q: q.status.used["pods"].string == "1")


async def test_orphans_are_adopted_and_pods_that_no_longer_match_released(cluster: Cluster) -> None:
    async with running(cluster, "--node-monitor-grace-period", "1h") as lab:
        bounds = core.ResourceQuota()
        bounds.metadata.name, bounds.metadata.namespace = "q", "default"
        bounds.spec.hard["pods"].string = "9"
        await lab.create(pod("orphan", labels={"app": "web"}), bounds)
        # The controllers have seen the pod when its quota counts it.
        await lab.object(
            kinds.RESOURCE_QUOTA,
            "q",
            lambda q: "pods" in q.status.used and q.status.used["pods"].string == "1",
        )
        made = await lab.create(replica_set(replicas=2))
        pods = await lab.listed(kinds.POD, lambda found: len(_owned(found, made)) == 2)
        assert "orphan" in {p.metadata.name for p in pods}
        assert len(pods) == 2
        await lab.client.patch(kinds.POD, "orphan", "default", {"metadata": {"labels": {"app": "other"}}})
        pods = await lab.listed(kinds.POD, lambda found: len(found) == 3 and len(_owned(found, made)) == 2)
        assert "orphan" not in {p.metadata.name for p in _owned(pods, made)}


async def test_pods_become_available_by_time_alone(cluster: Cluster) -> None:
    async with running(cluster, "--node-monitor-grace-period", "1h") as lab:
        slow = replica_set(replicas=1, min_ready_seconds=1)
        await lab.create(node())
        await lab.create(slow)
        made = (await lab.listed(kinds.POD, lambda found: len(found) == 1))[0]
        await lab.run_pod(made, "n1")
        await lab.object(kinds.REPLICA_SET, "web", lambda s: s.status.availableReplicas == 1)
        now = SystemClock().now()
        found = await lab.get(kinds.POD, made.metadata.name)
        assert found is not None
        ready = get_condition(found.status.conditions, "Ready")
        assert ready is not None
        assert now - from_time(ready.lastTransitionTime) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_controller_killed_while_creating_pods_creates_none_twice(
    cluster: Cluster, moment: str
) -> None:
    async with running(cluster) as lab:
        # One, then two, then four: it dies amid the second batch.
        lab.arm(CREATED + moment, "1*off->crash")
        await lab.create(replica_set(replicas=7))
        assert await cluster.exited("controllers") == -9
        made = len(await lab.all(kinds.POD))
        assert 1 <= made <= 3
        await cluster.start("controllers")
        await lab.object(kinds.REPLICA_SET, "web", lambda s: s.status.replicas == 7)
        assert len(await lab.all(kinds.POD)) == 7


async def test_a_set_whose_pods_are_rejected_has_a_condition(cluster: Cluster) -> None:
    async with running(cluster) as lab:
        broken = replica_set(replicas=1)
        broken.spec.template.spec.priorityClassName = "no-such-class"
        await lab.create(broken)
        found = await lab.object(kinds.REPLICA_SET, "web", lambda s: bool(s.status.conditions))
        failure = get_condition(found.status.conditions, "ReplicaFailure")
        assert failure is not None
        assert (failure.status, failure.reason) == ("True", "FailedCreate")
        assert "no-such-class" in failure.message
        event = await lab.event("FailedCreate", "web")
        assert event.type == "Warning"


async def test_a_budget_allows_as_many_evictions_as_it_may(cluster: Cluster) -> None:
    async with running(cluster, "--node-monitor-grace-period", "1h") as lab:
        await lab.create(node())
        await lab.create(replica_set(replicas=3))
        await lab.create(budget(maxUnavailable="34%"))
        pods = await lab.listed(kinds.POD, lambda found: len(found) == 3)
        for each in pods:
            await lab.run_pod(each, "n1")
        kind = kinds.POD_DISRUPTION_BUDGET
        found = await lab.object(kind, "budget", lambda b: b.status.currentHealthy == 3)
        assert (found.status.expectedPods, found.status.desiredHealthy) == (3, 1)
        assert found.status.disruptionsAllowed == 2
        allowed = get_condition(found.status.conditions, "DisruptionAllowed")
        assert allowed is not None
        assert (allowed.status, allowed.reason) == ("True", "SufficientPods")
        for each in pods[:2]:
            await lab.client.evict("default", each.metadata.name)
        # The set makes two more, which are not ready: nothing more may go.
        found = await lab.object(
            kind, "budget", lambda b: b.status.currentHealthy == 1 and not b.status.disruptedPods
        )
        assert found.status.disruptionsAllowed == 0
        refused = get_condition(found.status.conditions, "DisruptionAllowed")
        assert refused is not None
        assert (refused.status, refused.reason) == ("False", "InsufficientPods")
        with pytest.raises(StatusError) as error:
            await lab.client.evict("default", pods[2].metadata.name)
        assert error.value.code == 429


async def test_a_budget_over_what_cannot_be_scaled_allows_nothing(cluster: Cluster) -> None:
    # Its job does not exist: the garbage collector would take the pod away.
    async with running(cluster, "--controllers", "disruption-controller") as lab:
        job = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u1", "controller": True}
        await lab.create(pod("p", labels={"app": "web"}, owners=[job]))
        await lab.create(budget(maxUnavailable=1))
        # The controller may hear of the budget before it hears of the pod.
        found = await lab.object(
            kinds.POD_DISRUPTION_BUDGET,
            "budget",
            lambda b: any(row.reason == "SyncFailed" for row in b.status.conditions),
        )
        failed = get_condition(found.status.conditions, "DisruptionAllowed")
        assert failed is not None
        assert (failed.status, failed.reason) == ("False", "SyncFailed")
        assert found.status.disruptionsAllowed == 0
        await lab.event("CalculateExpectedPodCountFailed", "budget")


async def test_a_set_in_a_terminating_namespace_records_no_event(cluster: Cluster) -> None:
    async with running(cluster, "--controllers", "replicaset-controller") as lab:
        space = core.Namespace()
        space.metadata.name = "ending"
        await lab.create(space)
        made = replica_set(replicas=0)
        made.metadata.namespace = "ending"
        await lab.create(made)
        await lab.client.delete(kinds.NAMESPACE, "ending")
        # It keeps its content: the namespace controller does not run.
        await lab.client.patch(kinds.REPLICA_SET, "web", "ending", {"spec": {"replicas": 2}})

        async def read() -> apps.ReplicaSet:
            return await lab.client.get(kinds.REPLICA_SET, "web", "ending")

        seen = await eventually(read, lambda s: s.status.observedGeneration == s.metadata.generation)
        assert (seen.status.replicas, list(seen.status.conditions)) == (0, [])
