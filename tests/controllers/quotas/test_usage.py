"""What a namespace uses of its quota, as tables."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.controllers.quotas.usage import measured_kinds, recount, usage_of
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.wire import codec
from tests.controllers.builders import pod

_NOW = 1_000.0


def _quota(hard: dict[str, str], **more: Any) -> core.ResourceQuota:
    document = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard, **more}}
    return codec.from_json(core.ResourceQuota, document)


def _asking(name: str, cpu: str, **fields: Any) -> core.Pod:
    found = pod(name, **fields)
    found.spec.containers[0].resources.requests["cpu"].string = cpu
    return found


@pytest.mark.parametrize(
    ("hard", "plurals"),
    [
        ({"pods": "1", "requests.cpu": "1", "requests.example.com/gpu": "1"}, ["pods"]),
        ({"count/deployments.apps": "1", "services.nodeports": "1"}, ["deployments", "services"]),
        ({"requests.storage": "1", "x.storageclass.storage.k8s.io/requests.storage": "1"},
         ["persistentvolumeclaims"]),
        ({"secrets": "1"}, ["secrets"]),
        ({"count/unknown.example.com": "1"}, []),
    ],
)  # fmt: skip
def test_which_kinds_a_quota_limits(hard: dict[str, str], plurals: list[str]) -> None:
    assert sorted(kind.plural for kind in measured_kinds(_quota(hard))) == plurals


def test_ended_pods_count_for_count_pods_only() -> None:
    bounds = _quota({"pods": "9", "count/pods": "9", "requests.cpu": "9", "count/unknown.example.com": "1"})
    pods = [_asking("a", "500m"), _asking("b", "1"), _asking("c", "1", phase="Succeeded")]
    total = usage_of(bounds, {kinds.POD: pods}, _NOW)
    assert {name: str(value) for name, value in total.items()} == {
        "count/pods": "3",
        "pods": "2",
        "requests.cpu": "1500m",
    }


def test_a_pod_that_is_stuck_in_its_deletion_counts_for_count_pods_only() -> None:
    """The grace period counts from the deletionTimestamp, as upstream (QuotaV1Pod)."""
    bounds = _quota({"pods": "9", "count/pods": "9", "requests.cpu": "9"})
    stuck = _asking("a", "1")
    stuck.metadata.deletionTimestamp.seconds, stuck.metadata.deletionGracePeriodSeconds = 900, 100
    in_time, late = (usage_of(bounds, {kinds.POD: [stuck]}, now) for now in (_NOW, _NOW + 0.5))
    assert [str(in_time[name]) for name in ("pods", "count/pods", "requests.cpu")] == ["1", "1", "1"]
    assert [str(late[name]) for name in ("pods", "count/pods", "requests.cpu")] == ["0", "1", "0"]


def test_only_what_is_in_scope_counts() -> None:
    bounds = _quota({"pods": "9"}, scopes=["BestEffort"])
    modest = pod("b")
    modest.spec.containers[0].ClearField("resources")
    total = usage_of(bounds, {kinds.POD: [_asking("a", "1"), modest]}, _NOW)
    assert str(total["pods"]) == "1"


def test_a_status_is_written_once() -> None:
    bounds = _quota({"pods": "9"})
    total = usage_of(bounds, {kinds.POD: [pod("a")]}, _NOW)
    new = recount(bounds, total)
    assert new is not None
    assert (new.status.hard["pods"].string, new.status.used["pods"].string) == ("9", "1")
    assert recount(new, total) is None
