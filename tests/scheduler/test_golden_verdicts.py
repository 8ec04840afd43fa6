"""Verdicts of the real kube-scheduler 1.36.2 on small clusters: feasibility, reasons, scores, preemption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from scheduler.framework.algorithm import NoNodesError, find_feasible
from scheduler.framework.diagnosis import FitError
from scheduler.framework.interface import Code
from scheduler.plugins.default_preemption import DefaultPreemption
from scheduler.plugins.registry import IN_TREE
from tests.scheduler.golden import World, build_world, read_lines

NO_NODES = "no nodes available to schedule pods"
CASES = list(read_lines("scheduler.jsonl"))


def needed_plugins(case: Mapping[str, Any]) -> set[str]:
    """Plugins that feasibility or preemption may depend on, beside those of every case.

    Scores of plugins that are missing are taken from the golden data, so they are no reason to leave out.
    """
    needed = {r["plugin"] for r in case["expect"]["rejected"].values()}
    needed |= {r["plugin"] for r in case["extra"].get("preemptionNodeStatus", {}).values()}
    for obj in case["objects"]:
        if obj["kind"] == "Pod":
            needed |= _of_pod(obj["spec"])
    return needed - {""}


def _of_pod(spec: Mapping[str, Any]) -> set[str]:
    needed = set()
    hard = [c["whenUnsatisfiable"] == "DoNotSchedule" for c in spec.get("topologySpreadConstraints", ())]
    if any(hard):
        needed.add("PodTopologySpread")
    for kind in ("podAffinity", "podAntiAffinity"):
        if spec.get("affinity", {}).get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution"):
            needed.add("InterPodAffinity")
    if any("persistentVolumeClaim" in v or "ephemeral" in v for v in spec.get("volumes", ())):
        needed.add("VolumeBinding")
    return needed


def check_scores(case: Mapping[str, Any], world: World, rows: Any, pod: Any) -> None:
    expected = case["expect"]["scores"]
    if not expected:
        return
    framework, state, snapshot = world.framework, world.state, world.snapshot
    status = framework.run_pre_score_plugins(state, pod, snapshot, rows)
    assert status is None
    scores = framework.run_score_plugins(state, pod, snapshot, rows)
    names = [snapshot.nodes[row].name for row in rows.tolist()]
    others: Counter[str] = Counter()
    for name, by_node in expected.items():
        for plugin, score in by_node["plugins"].items():
            if plugin not in IN_TREE:
                others[name] += score
    mine = {name: {p: int(s[i]) for p, s in scores.items()} for i, name in enumerate(names)}
    wanted = {
        name: {p: s for p, s in by_node["plugins"].items() if p in IN_TREE}
        for name, by_node in expected.items()
    }
    assert mine == wanted
    total = {name: sum(mine[name].values()) + others[name] for name in names}
    assert total == {name: by_node["total"] for name, by_node in expected.items()}
    best = max(total.values())
    assert sorted(n for n, t in total.items() if t == best) == case["expect"]["selected"]


def check_rejections(case: Mapping[str, Any], world: World, error: FitError | None) -> None:
    if error is None:
        return
    expect, extra = case["expect"], case["extra"]
    for name, wanted in expect["rejected"].items():
        status = error.diagnosis.statuses.get(name)
        plugin = status.plugin or wanted["plugin"]  # nodes that PreFilter left out have none
        found = (plugin, sorted(set(status.reasons)), status.code.name)
        assert found == (wanted["plugin"], sorted(wanted["reasons"]), wanted["code"]), name
    if "message" in extra:
        assert str(error) == extra["message"]


def check_preemption(case: Mapping[str, Any], world: World, error: FitError, pod: Any) -> None:
    expect, extra = case["expect"], case["extra"]
    plugin = world.framework.plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    wanted = expect["preemption"]
    if wanted is None:
        return
    result, status = world.framework.run_post_filter_plugins(world.state, pod, error.diagnosis.statuses)
    assert status.message() == extra.get("preemptionMessage", "")
    info = None if result is None else result.nominating_info
    if "keepsNominatedNode" in extra:
        assert (info is None) == extra["keepsNominatedNode"]
    if status.code is Code.Error:
        return  # preemption did not run
    decision = plugin.decide(world.state, pod, error.diagnosis.statuses)
    if decision.candidate is not None:
        assert info is not None
        assert info.node_name in {c.node for c in decision.best}
    candidates = {
        c.node: (sorted(str(v.key) for v in c.victims), c.pdb_violations) for c in decision.candidates
    }
    assert candidates == {
        node: (sorted(c["victims"]), c["numPDBViolations"]) for node, c in wanted["candidates"].items()
    }
    best = sorted(c.node for c in decision.best)
    nominated = wanted["nominatedNode"]
    assert best == sorted(extra.get("nominatedNodeTies", [nominated] if nominated else []))
    for candidate in decision.candidates:
        if candidate.node in extra.get("victimsByImportance", {}):
            by_importance = [str(v.key) for v in candidate.victims]
            assert by_importance == extra["victimsByImportance"][candidate.node]
    found = {
        name: (status.plugin, sorted(status.reasons), status.code.name)
        for name, status in (decision.node_statuses or {}).items()
    }
    for name, status in extra.get("preemptionNodeStatus", {}).items():
        assert found[name] == (status["plugin"], sorted(status["reasons"]), status["code"])


def check(case: Mapping[str, Any]) -> None:
    world = build_world(case["objects"], gates=case["featureGates"])
    pod = world.pods[case["pod"]]
    expect, extra = case["expect"], case["extra"]
    gated = world.framework.run_pre_enqueue_plugins(pod)
    if "preEnqueue" in extra:
        assert gated is not None
        assert (gated.plugin, list(gated.reasons)) == (
            extra["preEnqueue"]["plugin"],
            extra["preEnqueue"]["reasons"],
        )
        return
    assert gated is None
    if not len(world.snapshot):
        with pytest.raises(NoNodesError, match=extra.get("message", NO_NODES)):
            find_feasible(world.framework, world.state, pod, world.snapshot)
        assert (expect["feasible"], expect["rejected"]) == ([], {})
        return
    try:
        search, _ = find_feasible(world.framework, world.state, pod, world.snapshot, percentage=100)
    except FitError as error:
        assert expect["feasible"] == []
        check_rejections(case, world, error)
        check_preemption(case, world, error, pod)
        return
    names = sorted(world.snapshot.nodes[row].name for row in search.rows.tolist())
    if extra.get("nominatedFastPath"):
        assert names == expect["selected"]
        return
    if expect["feasible"] != names:
        assert pod.pod.status.nominatedNodeName in names
        assert names == expect["selected"]
        return
    check_per_node(case, world, pod)
    check_scores(case, world, search.rows, pod)
    if len(names) == 1:
        assert expect["selected"] == names


def check_per_node(case: Mapping[str, Any], world: World, pod: Any) -> None:
    """Rejections of nodes beside feasible ones, one node at a time."""
    for name, wanted in case["expect"]["rejected"].items():
        if "didn't satisfy plugin" in wanted["reasons"][0]:
            continue
        node = world.snapshot.get(name)
        assert node is not None
        status = world.framework.run_filter_plugins_with_nominated_pods(world.state, pod, node)
        assert status is not None
        assert (status.plugin, sorted(status.reasons), status.code.name) == (
            wanted["plugin"],
            sorted(wanted["reasons"]),
            wanted["code"],
        )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_verdict(case: Mapping[str, Any]) -> None:
    check(case)


def test_every_plugin_is_there() -> None:
    """Scores of a plugin that is missing would be taken from the recording."""
    needed = {plugin for case in CASES for plugin in needed_plugins(case)}
    scored = {p for case in CASES for by in case["expect"]["scores"].values() for p in by["plugins"]}
    assert needed | scored <= set(IN_TREE)
