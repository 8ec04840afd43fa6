"""NodeDeclaredFeatures beside the recorded cases: which pods need what, and the gate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.wire import codec
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.nodes.node_declared_features import NodeDeclaredFeatures, needed_features
from tests.scheduler.builders import desk, node

RESTART, USERS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
RULES = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]


def pod_of(**spec: Any) -> PodInfo:
    document = {"metadata": {"name": "p", "namespace": "default", "uid": "uid-p"}, "spec": spec}
    return PodInfo(codec.from_json(core.Pod, document))


@pytest.mark.parametrize(
    ("spec", "features"),
    [
        ({}, set()),
        ({"containers": [{"name": "c", "restartPolicyRules": RULES}]}, {RESTART}),
        ({"initContainers": [{"name": "c", "restartPolicyRules": RULES}]}, {RESTART}),
        ({"containers": [{"name": "c", "restartPolicyRules": [{"action": "Restart"}]}]}, set()),
        ({"hostNetwork": True, "hostUsers": False}, {USERS}),
        ({"hostNetwork": True, "hostUsers": True}, set()),
        ({"hostNetwork": True}, set()),
        ({"hostUsers": False}, set()),
    ],
)
def test_what_a_pod_needs(spec: dict[str, Any], features: set[str]) -> None:
    assert needed_features(pod_of(**spec).pod.spec) == features


NEEDS_BOTH = {
    "hostNetwork": True, "hostUsers": False, "containers": [{"name": "c", "restartPolicyRules": RULES}],
}  # fmt: skip


def test_a_node_must_declare_all_of_it() -> None:
    on = desk()
    for name, declared in (("n1", [RESTART]), ("n2", ["A", USERS, RESTART]), ("n3", [])):
        added = node(name)
        added.status.declaredFeatures.extend(declared)
        on.add_nodes(added)
    snapshot, state, pod = on.framework.snapshot, CycleState(), pod_of(**NEEDS_BOTH)
    on.cache.update_snapshot(snapshot)
    plugin = on.framework.plugins["NodeDeclaredFeatures"]
    assert isinstance(plugin, NodeDeclaredFeatures)
    assert plugin.pre_filter(state, pod, snapshot) == (None, None)
    one_by_one = [plugin.filter(state, pod, each) is None for each in snapshot.nodes]
    assert one_by_one == [False, True, False]
    for rows in (slice(0, 3), np.array([2, 1, 0])):
        mask = plugin.filter_all(state, pod, snapshot, rows)
        assert mask is not None
        assert mask.tolist() == [False, True, False]


@pytest.mark.parametrize(("version", "on"), [(Version(1, 35), False), (Version(1, 36), True)])
def test_the_gate(version: Version, on: bool) -> None:
    framework = desk(environment={"gates": Gates("scheduler", version), "version": version}).framework
    plugin = framework.plugins["NodeDeclaredFeatures"]
    assert isinstance(plugin, NodeDeclaredFeatures)
    _, status = plugin.pre_filter(CycleState(), pod_of(**NEEDS_BOTH), framework.snapshot)
    assert (status is None) == on
    assert bool(plugin.events_to_register()) == on
