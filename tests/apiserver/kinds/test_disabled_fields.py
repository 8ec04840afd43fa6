"""Fields of workloads whose gates are off at older versions: dropped on write, unless stored before.

Source: kube-apiserver 1.36, pkg/registry/apps/statefulset and pkg/registry/autoscaling (dropDisabledFields).
"""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import Message

from nominee.apiserver.kinds.apps import stateful_sets
from nominee.apiserver.kinds.autoscaling import horizontal_pod_autoscalers
from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import Environment
from nominee.machinery.api.pb import apps, autoscaling
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime.clock import to_time
from nominee.machinery.wire import codec

_SET = codec.from_json(
    apps.StatefulSet, {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1, "maxUnavailable": 2}}}}
)
_TOLERANT = codec.from_json(
    autoscaling.HorizontalPodAutoscaler,
    {"spec": {"behavior": {"scaleUp": {"tolerance": "500m"}, "scaleDown": {"tolerance": "0"}}}},
)

_SPEC: dict[str, Any] = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
    "maxReplicas": 3,
}
_VALUE = {"metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}}
_QUEUE = {"type": "External", "external": _VALUE}


def _of_service(version: str) -> dict[str, Any]:
    """Return a metric of an object with an apiVersion."""
    about = {"apiVersion": version, "kind": "Service", "name": "s"}
    return {"type": "Object", "object": {**_VALUE, "describedObject": about}}


@pytest.mark.parametrize("updates", [False, True])
@pytest.mark.parametrize(
    ("rules", "obj", "name", "since"),
    [
        (stateful_sets.RULES, _SET, "maxUnavailable", Version(1, 37)),
        (horizontal_pod_autoscalers.V2, _TOLERANT, "tolerance", Version(1, 35)),
    ],
)
def test_a_field_is_dropped_where_its_gate_is_off(
    rules: KindRules[Any], obj: Message, name: str, since: Version, updates: bool
) -> None:
    def written(version: Version, old: Message) -> bool:
        """Return whether the field is stored."""
        new = type(obj).FromString(obj.SerializeToString())
        env = Environment(Gates("apiserver", version), to_time(0.0))
        if updates:
            rules.strategy.prepare_for_update(new, old, env)
        else:
            rules.strategy.prepare_for_create(new, env)
        return name in str(codec.to_json(new))

    assert written(since, type(obj)())
    assert not written(Version(1, since.minor - 1), type(obj)())
    assert written(Version(1, since.minor - 1), obj) is updates


def test_a_gate_makes_a_field_known_before_its_default() -> None:
    """Source: kubernetes/kubernetes#133153 (alpha since 1.24, beta since 1.35)."""
    new = apps.StatefulSet.FromString(_SET.SerializeToString())
    gates = Gates("apiserver", Version(1, 36), {"MaxUnavailableStatefulSet": True})
    stateful_sets.RULES.strategy.prepare_for_create(new, Environment(gates, to_time(0.0)))
    assert new.spec.updateStrategy.rollingUpdate.HasField("maxUnavailable")


@pytest.mark.parametrize(
    ("before", "after", "version"),
    [
        ({"minReplicas": 0, "metrics": [_QUEUE]}, {"maxReplicas": 4}, Version(1, 36)),
        ({"scaleTargetRef": {"kind": "Deployment", "name": "d"}}, {"maxReplicas": 4}, Version(1, 36)),
        ({"metrics": [_of_service("a/b/c")]}, {"metrics": [_of_service("a/b/d")]}, Version(1, 36)),
        ({}, {"scaleTargetRef": {"kind": "Deployment", "name": "d"}}, Version(1, 33)),
    ],
    ids=["zero replicas", "target without group", "version of an object", "before 1.34"],
)
def test_what_a_stored_autoscaler_has_stays_valid(
    before: dict[str, Any], after: dict[str, Any], version: Version
) -> None:
    """Source: pkg/registry/autoscaling (validationOptionsForHorizontalPodAutoscaler)."""
    env = Environment(Gates("apiserver", version), to_time(0.0))
    strategy = horizontal_pod_autoscalers.V2.strategy
    old, new = (
        codec.from_json(
            autoscaling.HorizontalPodAutoscaler,
            {"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1"}, "spec": _SPEC | spec},
        )
        for spec in (before, before | after)
    )
    assert strategy.validate_update(new, old, env) == []
    assert bool(strategy.validate(new, env)) is (version > Version(1, 33))


@pytest.mark.parametrize(("version", "allowed"), [(Version(1, 36), False), (Version(1, 37), True)])
def test_an_autoscaler_to_zero_needs_a_version(version: Version, allowed: bool) -> None:
    """Source: kubernetes/kubernetes#139648 (HPAScaleToZero is on since 1.37)."""
    spec = {
        "metadata": {"name": "a", "namespace": "n"},
        "spec": _SPEC | {"minReplicas": 0, "metrics": [_QUEUE]},
    }
    env = Environment(Gates("apiserver", version), to_time(0.0))
    found = horizontal_pod_autoscalers.V2.strategy.validate(
        codec.from_json(autoscaling.HorizontalPodAutoscaler, spec), env
    )
    assert (found == []) is allowed


def test_a_known_field_is_validated() -> None:
    """Source: pkg/apis/apps/validation (validateRollingUpdateStatefulSet)."""
    of = apps.StatefulSet.FromString(_SET.SerializeToString())
    of.spec.updateStrategy.type = "RollingUpdate"
    of.spec.updateStrategy.rollingUpdate.maxUnavailable.type = 1
    of.spec.updateStrategy.rollingUpdate.maxUnavailable.strVal = "00%"
    env = Environment(Gates("apiserver", Version(1, 37)), to_time(0.0))
    found = [each.message for each in stateful_sets.RULES.strategy.validate(of, env)]
    assert 'Invalid value: "00%": cannot be 0' in found
