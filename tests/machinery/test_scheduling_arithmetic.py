"""QoS, taints, node affinity and priority, against the real components' verdicts and by tables."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.machinery.api.pb import core
from nominee.machinery.api.selectors import SelectorError
from nominee.machinery.resources import pod_resources as resources
from nominee.machinery.resources import qos
from nominee.machinery.scheduling import node_affinity, priority, taints
from nominee.machinery.scheduling.node_affinity import NodeTerm, PreferredTerms, RequiredNodeAffinity
from nominee.machinery.wire import codec
from tests.support.recordings import read

SCHEDULING = [case for case in read("scheduler.jsonl") if not case["extra"].get("preEnqueue")]
# The order in which the default profile filters; upstream reports the first plugin that says no.
BEFORE_FIT = ("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts")


def read_case(case: dict[str, Any]) -> tuple[core.Pod, list[core.Node], list[core.Pod]]:
    nodes, pods = [], []
    for obj in case["objects"]:
        if obj["kind"] == "Node":
            nodes.append(codec.from_json(core.Node, obj))
        elif obj["kind"] == "Pod":
            pods.append(codec.from_json(core.Pod, obj))
    if isinstance(case["pod"], dict):
        return codec.from_json(core.Pod, case["pod"]), nodes, pods
    namespace, _, name = case["pod"].rpartition("/")
    [pending] = [p for p in pods if p.metadata.name == name and namespace in ("", p.metadata.namespace)]
    return pending, nodes, [p for p in pods if p is not pending]


def comparison(case: dict[str, Any]) -> bool:
    return (
        bool(case["featureGates"].get("TaintTolerationComparisonOperators"))
        if case.get("featureGates")
        else False
    )


def test_taints_and_affinity_agree_with_the_scheduler() -> None:
    """Where a node was found feasible both allow it; where one of the two said no, ours says no."""
    seen = {"feasible": 0, "TaintToleration": 0, "NodeAffinity": 0}
    for case in SCHEDULING:
        pod, nodes, _ = read_case(case)
        for node in nodes:
            name = node.metadata.name
            taint = taints.find_untolerated(
                node.spec.taints, pod.spec.tolerations, comparison=comparison(case)
            )
            allowed = node_affinity.matches(pod, node)
            rejected = case["expect"]["rejected"].get(name, {}).get("plugin")
            if name in case["expect"]["feasible"]:
                assert taint is None, (case["name"], name)
                assert allowed, (case["name"], name)
                seen["feasible"] += 1
            elif rejected == "TaintToleration":
                assert taint is not None, (case["name"], name)
                seen[rejected] += 1
            elif rejected == "NodeAffinity" and case["extra"].get("preFilter") is None:
                assert not allowed, (case["name"], name)
                seen[rejected] += 1
    assert min(seen.values()) > 20, seen


def requests(case: dict[str, Any], pod: core.Pod, *, use_status: bool) -> dict[str, int]:
    gates = case.get("featureGates") or {}
    return resources.pod_requests(
        pod,
        use_status=use_status,
        pod_level=gates.get("PodLevelResources", True),
        pod_level_status=gates.get("InPlacePodLevelResourcesVerticalScaling", True),
    )


def shortages(
    case: dict[str, Any], node: core.Node, wanted: dict[str, int], pods: list[core.Pod]
) -> set[str]:
    free = resources.node_allocatable(node)
    free.setdefault("pods", 0)
    for pod in pods:
        if pod.spec.nodeName == node.metadata.name and pod.status.phase not in ("Succeeded", "Failed"):
            free = resources.subtract(free, requests(case, pod, use_status=True) | {"pods": 1})
    reasons = {f"Insufficient {name}" for name, number in wanted.items() if 0 < number > free.get(name, 0)}
    return reasons | ({"Too many pods"} if free["pods"] < 1 else set())


def test_requests_agree_with_the_scheduler() -> None:
    """NodeResourcesFit's reasons follow from our sums, in the family that is about them."""
    rejected = feasible = 0
    for case in SCHEDULING:
        if case["family"] != "fit" or any(obj["kind"] == "ResourceClaim" for obj in case["objects"]):
            continue
        pending, nodes, pods = read_case(case)
        wanted = requests(case, pending, use_status=False)
        for node in nodes:
            reasons = shortages(case, node, wanted, pods)
            verdict = case["expect"]["rejected"].get(node.metadata.name)
            if node.metadata.name in case["expect"]["feasible"]:
                assert not reasons, (case["name"], node.metadata.name)
                feasible += 1
            elif verdict and verdict["plugin"] == "NodeResourcesFit":
                assert reasons == set(verdict["reasons"]), (case["name"], node.metadata.name)
                rejected += 1
    assert rejected > 20
    assert feasible > 20


def test_qos_agrees_with_the_api_server() -> None:
    checked = 0
    for case in read("resize_validation.jsonl"):
        expect = case["expect"]
        if expect["accepted"] and expect.get("qosClass"):
            old = codec.from_json(core.Pod, case["old"])
            assert qos.qos_class(old) == expect["qosClass"], case["name"]
            checked += 1
    assert checked > 10


def test_qos_agrees_with_the_kubelet() -> None:
    checked = 0
    for case in read("kubelet.jsonl"):
        for step in case["steps"]:
            if step["op"] != "add":
                continue
            for given in step["pods"]:
                spec: dict[str, Any] = {"containers": [], "initContainers": []}
                for c in given["containers"]:
                    row = {k: c[k] for k in ("requests", "limits") if k in c}
                    spec["containers"].append({"name": c["name"], "resources": row})
                for c in given.get("initContainers", ()):
                    row = {k: c[k] for k in ("requests", "limits") if k in c}
                    spec["initContainers"].append({"name": c["name"], "resources": row})
                if given.get("podResources"):
                    spec["resources"] = given["podResources"]
                pod = codec.from_json(core.Pod, {"spec": spec})
                assert qos.qos_class(pod) == given["qos"], (case["name"], given["name"])
                checked += 1
    assert checked > 100


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        ({}, {}, "BestEffort"),
        ({"cpu": "0"}, {"memory": "0"}, "BestEffort"),
        ({"example.com/gpu": "1"}, {"example.com/gpu": "1"}, "BestEffort"),
        ({"cpu": "1"}, {}, "Burstable"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1000m", "memory": "1024Mi"}, "Guaranteed"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}, "Burstable"),
        ({"cpu": "1"}, {"cpu": "1"}, "Burstable"),
        ({}, {"cpu": "1", "memory": "1Gi"}, "Burstable"),
    ],
)
def test_qos_classes(requests: dict[str, str], limits: dict[str, str], expected: str) -> None:
    row = {"requests": requests, "limits": limits}
    by_container = codec.from_json(core.Pod, {"spec": {"containers": [{"name": "c", "resources": row}]}})
    assert qos.qos_class(by_container) == expected
    by_container.status.qosClass = "Guaranteed"
    assert qos.recorded_qos_class(by_container) == "Guaranteed"
    bare = {"containers": [{"name": "c"}], "resources": row}
    assert qos.qos_class(codec.from_json(core.Pod, {"spec": bare})) == expected


def test_pod_level_resources_decide_the_class_only_behind_their_gate() -> None:
    guaranteed = {"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}
    pod = codec.from_json(core.Pod, {"spec": {"containers": [{"name": "c"}], "resources": guaranteed}})
    assert qos.qos_class(pod) == "Guaranteed"
    assert qos.qos_class(pod, pod_level=False) == "BestEffort"


@pytest.mark.parametrize(
    ("toleration", "taint", "tolerated"),
    [
        ({"operator": "Exists"}, ("k", "v", "NoSchedule"), True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, ("k", "v", "NoSchedule"), False),
        ({"key": "k", "value": "v"}, ("k", "v", "NoSchedule"), True),
        ({"key": "k", "operator": "Equal", "value": "w"}, ("k", "v", "NoSchedule"), False),
        ({"key": "k"}, ("k", "", "NoSchedule"), True),
        ({"key": "k", "operator": "Gt", "value": "5"}, ("k", "6", "NoSchedule"), True),
        ({"key": "k", "operator": "Gt", "value": "5"}, ("k", "5", "NoSchedule"), False),
        ({"key": "k", "operator": "Lt", "value": "-5"}, ("k", "-6", "NoSchedule"), True),
        ({"key": "k", "operator": "Gt", "value": "05"}, ("k", "6", "NoSchedule"), False),
        ({"key": "k", "operator": "Lt", "value": "5"}, ("k", "four", "NoSchedule"), False),
        ({"key": "k", "operator": "Near", "value": "v"}, ("k", "v", "NoSchedule"), False),
    ],
)
def test_tolerations(toleration: dict[str, Any], taint: tuple[str, str, str], tolerated: bool) -> None:
    given = core.Toleration(**toleration)
    against = core.Taint(key=taint[0], value=taint[1], effect=taint[2])
    assert taints.tolerates(given, against, comparison=True) is tolerated
    if given.operator in ("Gt", "Lt"):
        assert not taints.tolerates(given, against)


def test_search_for_untolerated_taints() -> None:
    soft = core.Taint(key="a", effect="PreferNoSchedule")
    hard = core.Taint(key="b", effect="NoExecute")
    assert taints.find_untolerated([soft, hard], []) == hard
    assert taints.find_untolerated([soft, hard], [], effects={"PreferNoSchedule"}) == soft
    assert taints.find_untolerated([soft, hard], [core.Toleration(key="b", operator="Exists")]) is None
    assert taints.find_taint([soft, hard], "b") == hard
    assert taints.find_taint([soft, hard], "b", "NoSchedule") is None


def term(**fields: Any) -> core.NodeSelectorTerm:
    return codec.from_json(core.NodeSelectorTerm, fields)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("fields", "name", "matches"),
    [
        ({"matchExpressions": [expression("zone", "In", "a", "b")]}, "n1", True),
        ({"matchExpressions": [expression("zone", "NotIn", "a")]}, "n1", False),
        ({"matchExpressions": [expression("cores", "Gt", "7")]}, "n1", True),
        ({"matchExpressions": [expression("cores", "Lt", "8")]}, "n1", False),
        ({"matchExpressions": [expression("disk", "DoesNotExist")]}, "n1", True),
        ({"matchFields": [expression("metadata.name", "In", "n1")]}, "n1", True),
        ({"matchFields": [expression("metadata.name", "NotIn", "n1")]}, "n1", False),
        ({"matchFields": [expression("metadata.name", "In", "n1")]}, "", True),
        ({"matchFields": [expression("metadata.name", "In", "n1", "n2")]}, "n1", False),
        ({"matchExpressions": [expression("zone", "Near", "a")]}, "n1", False),
    ],
)
def test_terms(fields: dict[str, Any], name: str, matches: bool) -> None:
    assert NodeTerm.read(term(**fields)).matches({"zone": "a", "cores": "8"}, name) is matches


def affine(*terms: dict[str, Any], selector: dict[str, str] | None = None) -> core.Pod:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    spec = {"nodeSelector": selector or {}, "affinity": {"nodeAffinity": required}}
    return codec.from_json(core.Pod, {"spec": spec})


def test_terms_are_alternatives_and_an_empty_one_matches_nothing() -> None:
    wanted = RequiredNodeAffinity.of(
        affine({}, {"matchExpressions": [expression("a", "Exists")]}, selector={"b": "1"})
    )
    assert wanted.matches({"a": "", "b": "1"}, "n1")
    assert not wanted.matches({"a": ""}, "n1"), "nodeSelector must hold too"
    assert not wanted.matches({"b": "1"}, "n1")
    assert not RequiredNodeAffinity.of(affine({})).matches({}, "n1")
    assert RequiredNodeAffinity.of(core.Pod()).matches({}, "n1")


def test_errors_of_terms_name_their_place() -> None:
    bad = affine({"matchExpressions": [expression("a", "Near")], "matchFields": [expression("x", "Exists")]})
    affinity = RequiredNodeAffinity.of(bad).affinity
    assert affinity is not None
    assert affinity.errors == (
        'nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Near": supported values: '
        '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
        'nodeSelectorTerms[0].matchFields[0].operator: Unsupported value: "Exists": supported values: '
        '"In", "NotIn"',
    )


def test_preferences_add_their_weights() -> None:
    terms = [
        core.PreferredSchedulingTerm(weight=3, preference=term(matchExpressions=[expression("a", "Exists")])),
        core.PreferredSchedulingTerm(weight=4, preference=term(matchExpressions=[expression("b", "Exists")])),
        core.PreferredSchedulingTerm(weight=5, preference=term()),
        core.PreferredSchedulingTerm(weight=0, preference=term(matchExpressions=[expression("a", "Near")])),
    ]
    matching = [
        weight for weight, each in PreferredTerms.read(terms).terms if each.matches({"a": "", "b": ""}, "n1")
    ]
    assert matching == [3, 4]
    terms[3].weight = 1
    with pytest.raises(SelectorError, match=r"^\[3\]\.matchExpressions\[0\]\.operator: Unsupported"):
        PreferredTerms.read(terms)


def test_priority() -> None:
    pod = core.Pod()
    assert priority.pod_priority(pod) == 0
    assert priority.preempts(pod)
    assert not priority.is_critical(pod)
    pod.spec.preemptionPolicy = "Never"
    assert not priority.preempts(pod)
    pod.spec.priority = priority.SYSTEM_CRITICAL
    assert priority.is_critical(pod)
    static = core.Pod()
    static.metadata.annotations["kubernetes.io/config.source"] = "file"
    assert priority.is_critical(static)
    static.metadata.annotations["kubernetes.io/config.source"] = "api"
    assert not priority.is_critical(static)
