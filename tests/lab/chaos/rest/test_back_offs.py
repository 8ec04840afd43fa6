"""Owners that a quota keeps from having their pods, on states as data."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.lab.chaos.rest.workloads.back_offs import (
    has_failing_jobs,
    has_refused_jobs,
    has_refused_pods,
    lacking,
)
from tests.lab.chaos.rest.clusters import Manifests, manifest, state

QUOTA = {"quota": manifest("ResourceQuota", "q", spec={"hard": {"pods": "5"}})}
ELSEWHERE = {"quota": manifest("ResourceQuota", "q", metadata={"namespace": "other"}, spec={"hard": {}})}


def _owner(kind: str, spec: dict[str, Any], status: dict[str, Any] | None = None) -> Manifests:
    api = "batch/v1" if kind == "Job" else "apps/v1"
    return {"owner": manifest(kind, "web", api=api, spec=spec, status=status or {})}


REFUSED = _owner(
    "ReplicaSet", {"replicas": 1}, {"conditions": [{"type": "ReplicaFailure", "status": "True"}]}
)
SCALED = _owner("ReplicaSet", {"replicas": 1})
ORDERED = _owner("StatefulSet", {"replicas": 1})
DAEMON = _owner("DaemonSet", {}, {"desiredNumberScheduled": 1})
WORK = _owner("Job", {"completions": 1, "parallelism": 1})


@pytest.mark.parametrize(
    ("manifests", "is_refused"),
    [
        (REFUSED, True),
        (SCALED | QUOTA, False),
        (ORDERED | QUOTA, True),
        (DAEMON | QUOTA, True),
        (WORK | QUOTA, True),
        (WORK, False),
        (WORK | ELSEWHERE, False),
        (_owner("StatefulSet", {"replicas": 0}) | QUOTA, False),
        (_owner("DaemonSet", {}) | QUOTA, False),
        (_owner("Job", {"completions": 1, "parallelism": 1, "suspend": True}) | QUOTA, False),
    ],
)
def test_pods_that_a_quota_may_refuse(manifests: Manifests, is_refused: bool) -> None:
    assert has_refused_pods(state(manifests)) is is_refused


def test_without_controllers_no_pod_is_refused() -> None:
    assert not has_refused_pods(state(REFUSED, running=frozenset()))
    assert not has_refused_jobs(state(WORK | QUOTA, running=frozenset()))


@pytest.mark.parametrize(
    ("manifests", "is_refused"),
    [(WORK | QUOTA, True), (WORK, False), (WORK | ELSEWHERE, False), (ORDERED | QUOTA, False)],
)
def test_a_job_of_which_a_quota_may_refuse_pods(manifests: Manifests, is_refused: bool) -> None:
    assert has_refused_jobs(state(manifests)) is is_refused


@pytest.mark.parametrize(
    ("spec", "status", "is_failing"),
    [
        ({"completions": 1, "parallelism": 1}, {"failed": 2}, True),
        ({"completions": 1, "parallelism": 1}, {}, False),
        ({"completions": 1, "parallelism": 1, "suspend": True}, {"failed": 2}, False),
        ({"completions": 1, "parallelism": 1}, {"failed": 2, "succeeded": 1}, False),
    ],
)
def test_a_job_that_waits_before_it_replaces_a_failed_pod(
    spec: dict[str, Any], status: dict[str, Any], is_failing: bool
) -> None:
    failing = _owner("Job", spec, status)
    assert has_failing_jobs(state(failing)) is is_failing
    assert has_failing_jobs(state(failing | QUOTA)) is is_failing
    assert not has_failing_jobs(state(failing, running=frozenset()))


@pytest.mark.parametrize(
    ("manifests", "uids"),
    [
        (ORDERED, ["StatefulSet-web"]),
        (DAEMON, ["DaemonSet-web"]),
        (WORK, ["Job-web"]),
        (REFUSED, ["ReplicaSet-web"]),
        (SCALED, []),  # its own condition says when pods are refused
        (_owner("StatefulSet", {"replicas": 0}), []),
    ],
)
def test_owners_that_lack_pods(manifests: Manifests, uids: list[str]) -> None:
    assert [owner.metadata.uid for owner in lacking(state(manifests))] == uids
    assert list(lacking(state(manifests, running=frozenset()))) == []
