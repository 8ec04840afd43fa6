"""The rule about horizontal pod autoscalers: it finds planted violations, and nothing about a correct one."""

from __future__ import annotations

import pytest

from nominee.lab.chaos.rest.workloads.pod_autoscalers import pod_autoscalers
from tests.lab.chaos.rest.clusters import Change, Manifests, changed, manifest, put, state

ACTIVE = [{"type": name, "status": "True"} for name in ("AbleToScale", "ScalingActive")]


def _scales(manifests: Manifests) -> None:
    """Let an autoscaler scale the Deployment, which has two replicas."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3}
    status = {"currentReplicas": 2, "desiredReplicas": 2, "conditions": ACTIVE}
    manifests["hpa"] = manifest(
        "HorizontalPodAutoscaler", "web", api="autoscaling/v2", spec=spec, status=status
    )


def _found(change: Change) -> list[str]:
    manifests = changed(_scales)
    change(manifests)
    return [str(each) for each in pod_autoscalers(state(manifests))]


@pytest.mark.parametrize(
    "change",
    [
        lambda _: None,
        lambda all_: all_.pop("deployment"),
        lambda all_: (
            put("hpa/status/conditions", ACTIVE[:1])(all_),
            put("hpa/status/desiredReplicas", 3)(all_),
        ),
        put("hpa/spec/scaleTargetRef/kind", "Unknown"),
    ],
)
def test_a_correct_autoscaler_has_no_finding(change: Change) -> None:
    assert _found(change) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (put("hpa/status/desiredReplicas", 3), "wants 3 replicas, and its target has 2"),
        (put("hpa/status/currentReplicas", 1), "shows 1 currentReplicas, and its target has 2"),
        (put("hpa/spec/minReplicas", 3), "allows 3 to 3 replicas, and its target has 2"),
        (put("hpa/spec/maxReplicas", 1), "allows 1 to 1 replicas, and its target has 2"),
    ],
)
def test_a_planted_violation_is_found(change: Change, sentence: str) -> None:
    assert _found(change) == [f"horizontalpodautoscaler default/web {sentence}"]
