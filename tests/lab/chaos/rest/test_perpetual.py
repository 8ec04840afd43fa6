"""Clusters whose objects ask for work that does not end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nominee.lab.chaos.rest.perpetual import busy_namespaces, has_back_offs, runs_on, writes_elsewhere
from nominee.machinery.runtime.clock import rfc3339
from tests.lab.chaos.rest.clusters import NOW, Manifest, correct, manifest, owner, pod, state
from tests.lab.invariants import histories
from tests.lab.invariants.histories import History

NO_EXECUTE = {"key": "example.com/busy", "effect": "NoExecute"}


def cron_job(schedule: str, *, age: float = 200.0, last: float | None = 20.0, **spec: object) -> Manifest:
    """Return a CronJob of this age, that has started its last Job so many seconds ago."""
    return manifest(
        "CronJob",
        "c",
        api="batch/v1",
        metadata={"creationTimestamp": rfc3339(NOW - age)},
        spec={"schedule": schedule, **spec},
        status={} if last is None else {"lastScheduleTime": rfc3339(NOW - last)},
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (cron_job("* * * * *"), True),
        (cron_job("*/2 * * * *"), True),
        (cron_job("0 * * * *"), False),
        (cron_job("* * * * *", suspend=True), False),
        (cron_job("* * * * *", last=100.0), True),  # by a clock that is behind
        (cron_job("* * * * *", last=200.0), False),  # it waits for a Job, or was forgotten
        (cron_job("* * * * *", last=None), False),
        (cron_job("* * * * *", last=None, age=30.0), True),
        (cron_job("* 0 * * *", last=86400.0 - 3600.0), False),
        (cron_job("never"), False),
    ],
)
def test_a_cron_job_of_each_minute_runs_on(found: Manifest, expected: bool) -> None:
    assert runs_on(state({**correct(), "cron": found})) is expected


@pytest.mark.parametrize(
    ("seconds", "age", "has_owner", "expected"),
    [
        (5, 3, True, True),
        (5, 3, False, False),  # it is evicted once
        (5, 60, True, False),  # it should have been evicted
        (300, 3, True, False),
    ],
)
def test_a_pod_that_is_evicted_again_and_again_runs_on(
    seconds: int, age: int, has_owner: bool, expected: bool
) -> None:
    manifests = correct()
    manifests["node"]["spec"] = {"taints": [NO_EXECUTE]}
    metadata = owner(manifest("DaemonSet", "agent", api="apps/v1")) if has_owner else {}
    evicted = pod(
        "evicted",
        node=manifests["node"]["metadata"]["name"],
        creationTimestamp=rfc3339(NOW - age),
        **metadata,
    )
    evicted["spec"]["tolerations"] = [
        {"key": "example.com/busy", "operator": "Exists", "tolerationSeconds": seconds}
    ]
    manifests["evicted"] = evicted
    assert runs_on(state(manifests)) is expected


@pytest.mark.parametrize(("reason", "expected"), [("CrashLoopBackOff", True), ("ContainerCreating", False)])
def test_a_container_in_its_back_off_starts_with_its_kubelet(reason: str, expected: bool) -> None:
    waits = pod("waits", node="node-0")
    waits["status"]["containerStatuses"] = [{"name": "c", "state": {"waiting": {"reason": reason}}}]
    assert has_back_offs(state({**correct(), "waits": waits})) is expected


def test_work_that_does_not_end_is_that_of_a_namespace() -> None:
    cluster = state({**correct(), "cron": cron_job("* * * * *")})
    assert busy_namespaces(cluster) == {"default"}
    assert not busy_namespaces(replace(cluster, running=frozenset()))
    near, far = histories.pod("p"), histories.pod("p")
    far.metadata.namespace = "other"
    writes = History().put(histories.node("n1"), near, far).revisions
    assert [each.namespace for each in writes_elsewhere(writes, {"default"})] == ["other"]
