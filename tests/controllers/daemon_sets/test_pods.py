"""The nodes that fit a daemon set, and the pods for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from nominee.controllers.daemon_sets.pods import pod_for, template_of
from nominee.machinery.scheduling.daemons import NodeRules, Verdict, target_node
from nominee.machinery.wire.codec import to_json
from tests.controllers.builders import node, pod
from tests.controllers.daemon_sets.builders import KEEPS, NEITHER, RUNS, daemon_set

TAINT = {"key": "x", "value": "y"}


def _taint(key: str, effect: str) -> dict[str, str]:
    return {"key": f"node.kubernetes.io/{key}", "effect": effect}


def _affinity(*terms: Mapping[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


SSD = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
N1 = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
N2 = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}


@pytest.mark.parametrize(
    ("spec", "labels", "taints", "verdict"),
    [
        ({}, {}, [], RUNS),
        ({"nodeSelector": {"disk": "ssd"}}, {}, [], NEITHER),
        ({"nodeSelector": {"disk": "ssd"}}, {"disk": "ssd"}, [], RUNS),
        (_affinity(SSD), {"disk": "hdd"}, [], NEITHER),
        (_affinity(SSD), {"disk": "ssd"}, [], RUNS),
        (_affinity(N1), {}, [], RUNS),
        (_affinity(N2), {}, [], NEITHER),
        ({"nodeName": "n1"}, {}, [], RUNS),
        ({"nodeName": "n2"}, {}, [], NEITHER),
        ({}, {}, [{**TAINT, "effect": "NoSchedule"}], KEEPS),
        ({}, {}, [{**TAINT, "effect": "NoExecute"}], NEITHER),
        ({}, {}, [{**TAINT, "effect": "PreferNoSchedule"}], RUNS),
        ({"tolerations": [{"key": "x", "operator": "Exists"}]}, {}, [{**TAINT, "effect": "NoExecute"}], RUNS),
        ({}, {}, [_taint("not-ready", "NoExecute"), _taint("unreachable", "NoExecute")], RUNS),
        ({}, {}, [_taint("not-ready", "NoSchedule")], KEEPS),
        ({}, {}, [_taint("unschedulable", "NoSchedule")], RUNS),
        ({}, {}, [_taint(f"{each}-pressure", "NoSchedule") for each in ("disk", "memory", "pid")], RUNS),
        ({}, {}, [_taint("network-unavailable", "NoSchedule")], KEEPS),
        ({"hostNetwork": True}, {}, [_taint("network-unavailable", "NoSchedule")], RUNS),
        ({}, {}, [_taint("out-of-service", "NoExecute")], NEITHER),
    ],
)
def test_verdicts(
    spec: dict[str, Any], labels: dict[str, str], taints: Sequence[Mapping[str, str]], verdict: Verdict
) -> None:
    rules = NodeRules.of(daemon_set(**spec).spec.template.spec)
    assert rules.verdict(node(labels=labels, taints=taints)) == verdict


def test_a_pod_is_for_one_node_and_survives_what_is_wrong_with_it() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    other = {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}
    owner = daemon_set(
        annotations={"deprecated.daemonset.template.generation": "3"},
        tolerations=[{**own, "tolerationSeconds": 5}, other],
        **_affinity(SSD, N2),
    )
    made = pod_for(owner, template_of(owner, "abc"), "n7")
    assert dict(made.metadata.labels) == {
        "app": "agent", "pod-template-generation": "3", "controller-revision-hash": "abc",
    }  # fmt: skip
    assert made.metadata.generateName == "agent-"
    required = to_json(made.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution)
    only = {"key": "metadata.name", "operator": "In", "values": ["n7"]}
    assert required == {"nodeSelectorTerms": [{"matchFields": [only]}]}
    tolerations = [to_json(each) for each in made.spec.tolerations]
    assert tolerations[:2] == [own, other]
    assert [(each["key"].partition("/")[2], each["effect"]) for each in tolerations[2:]] == [
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ]
    assert target_node(made) == "n7"


def test_a_pod_without_a_node_of_its_own() -> None:
    assert target_node(pod("p", node="n3", **_affinity(N1))) == "n3"
    assert target_node(pod("p", **_affinity(SSD, N1))) == "n1"
    assert target_node(pod("p", **_affinity(SSD))) == ""
    assert target_node(pod("p")) == ""
