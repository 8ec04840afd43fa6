"""The rule about horizontal pod autoscalers: it finds planted violations, and nothing about a correct one."""

from __future__ import annotations

import pytest

from nominee.lab.chaos.rest.workloads.pod_autoscalers import pod_autoscalers
from nominee.machinery.runtime.clock import rfc3339
from tests.lab.chaos.rest.clusters import NOW, Change, Manifests, changed, manifest, put, state

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
        put("deployment/status/replicas", 3),  # a rollout waits for a pod that no node has room for
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


def _is_limited(seconds: float, *, reason: str = "ScaleUpLimit", policy: str = "Max") -> Change:
    """Let the autoscaler have scaled so long ago, and wait for its rate: four pods each 15 s."""
    limited = {"type": "ScalingLimited", "status": "True", "reason": reason}
    rules = {"selectPolicy": policy, "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}

    def change(manifests: Manifests) -> None:
        manifests["hpa"]["spec"]["behavior"] = {"scaleUp": rules}
        status = {"lastScaleTime": rfc3339(NOW - seconds), "conditions": [*ACTIVE, limited]}
        manifests["hpa"]["status"].update(status)

    return change


def test_an_autoscaler_that_its_rate_holds_back_is_not_at_rest() -> None:
    assert _found(_is_limited(14)) == [
        "horizontalpodautoscaler default/web scales on when its rate allows it"
    ]


@pytest.mark.parametrize(
    "change",
    [
        _is_limited(16),
        _is_limited(14, reason="TooManyReplicas"),
        _is_limited(14, reason="ScaleDownLimit"),
        _is_limited(14, policy="Disabled"),
    ],
)
def test_another_limit_or_an_earlier_scaling_is_no_reason_to_wait(change: Change) -> None:
    assert _found(change) == []
