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


def test_a_known_field_is_validated() -> None:
    """Source: pkg/apis/apps/validation (validateRollingUpdateStatefulSet)."""
    of = apps.StatefulSet.FromString(_SET.SerializeToString())
    of.spec.updateStrategy.type = "RollingUpdate"
    of.spec.updateStrategy.rollingUpdate.maxUnavailable.type = 1
    of.spec.updateStrategy.rollingUpdate.maxUnavailable.strVal = "00%"
    env = Environment(Gates("apiserver", Version(1, 37)), to_time(0.0))
    found = [each.message for each in stateful_sets.RULES.strategy.validate(of, env)]
    assert 'Invalid value: "00%": cannot be 0' in found
