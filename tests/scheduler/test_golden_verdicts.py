"""A scheduling cycle decides as kube-scheduler 1.36.2 did on small clusters (scheduler.jsonl).

`tests/nominee/explain/test_golden.py` compares the same recordings with explanations, which evaluate every
node. Here a cycle stops where it stops in production, and the filters are also called one node at a time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code, Status
from nominee.scheduler.framework.scheduling.algorithm import NoNodesError, find_feasible, pre_filter
from nominee.scheduler.framework.scheduling.diagnosis import FitError
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.default_preemption import DefaultPreemption
from tests.scheduler.golden import World, build_world
from tests.scheduler.recorded_verdicts import recorded
from tests.support.recordings import read

CASES = read("scheduler.jsonl")
_LEFT_OUT = re.compile(r"node\(s\) didn't satisfy plugin\(s\) \[(?P<plugins>[^]]+)\]")


def rejection(status: Status) -> dict[str, Any]:
    """Return a status in the recorded form, which names the plugins that left out a node in PreFilter."""
    left_out = _LEFT_OUT.fullmatch(status.reasons[0])
    plugin = left_out["plugins"] if left_out is not None and not status.plugin else status.plugin
    return {"plugin": plugin, "reasons": sorted(set(status.reasons)), "code": status.code.name}


def check_each_node(wanted: Mapping[str, Any], world: World, pod: PodInfo) -> None:
    """Compare the verdict about each node by itself; of nodes that PreFilter leaves out only that it does."""
    state = CycleState()
    try:
        rows, narrowing = pre_filter(world.framework, state, pod, world.snapshot)
    except FitError:
        return  # the pod is rejected as a whole; `test_verdict` compares that
    feasible, rejected = [], {}
    for row, node in enumerate(world.snapshot.nodes):
        if rows is not None and row not in rows:
            reason = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowing))}]"
            rejected[node.name] = rejection(Status(Code.UnschedulableAndUnresolvable, (reason,)))
            continue
        status = world.framework.run_filter_plugins_with_nominated_pods(state, pod, node)
        if status is None:
            feasible.append(node.name)
        else:
            rejected[node.name] = rejection(status)
    assert (sorted(feasible), rejected) == (wanted["feasible"], wanted["rejected"])


def check_scores(wanted: Mapping[str, Any], world: World, rows: NDArray[np.intp], pod: PodInfo) -> None:
    framework, state, snapshot = world.framework, world.state, world.snapshot
    assert framework.run_pre_score_plugins(state, pod, snapshot, rows) is None
    by_plugin = framework.run_score_plugins(state, pod, snapshot, rows)
    scores: dict[str, dict[str, Any]] = {}
    for index, row in enumerate(rows.tolist()):
        points = {plugin: int(column[index]) for plugin, column in by_plugin.items()}
        scores[snapshot.nodes[row].name] = {"plugins": points, "total": sum(points.values())}
    assert scores == wanted["scores"]
    best = max(score["total"] for score in scores.values())
    assert sorted(name for name, score in scores.items() if score["total"] == best) == wanted["selected"]


def rejections(world: World, error: FitError) -> dict[str, Any]:
    statuses = error.diagnosis.statuses
    return {node.name: rejection(statuses.get(node.name)) for node in world.snapshot.nodes}


def check_preemption(
    case: Mapping[str, Any], wanted: Mapping[str, Any], world: World, error: FitError, pod: PodInfo
) -> None:
    plugin = world.framework.plugins["DefaultPreemption"]
    assert isinstance(plugin, DefaultPreemption)
    result, status = world.framework.run_post_filter_plugins(world.state, pod, error.diagnosis.statuses)
    assert status.message() == wanted["preemptionMessage"]
    info = None if result is None else result.nominating_info
    keeps = case["extra"].get("keepsNominatedNode")
    if keeps is not None:
        assert (info is None) == keeps
    expected = wanted["preemption"]
    if status.code is Code.Error:  # a plugin before preemption failed, as it did in the recording
        assert expected == {"nominatedNode": "", "victims": [], "candidates": {}}
        return
    decision = plugin.decide(world.state, pod, error.diagnosis.statuses)
    best = sorted(candidate.node for candidate in decision.best)
    if best:
        assert info is not None
        assert info.node_name in best
    ties = wanted["nominatedNodeTies"] or ([expected["nominatedNode"]] if expected["nominatedNode"] else [])
    assert best == ties
    by_node = {candidate.node: candidate for candidate in decision.candidates}
    victims = {node: [str(victim.key) for victim in each.victims] for node, each in by_node.items()}
    assert victims == wanted["victimsByImportance"]
    candidates = {
        node: {"victims": sorted(victims[node]), "numPDBViolations": each.pdb_violations}
        for node, each in by_node.items()
    }
    nominated = best[0] if best else ""
    assert expected == {
        "nominatedNode": nominated,
        "victims": sorted(victims.get(nominated, ())),
        "candidates": candidates,
    }
    statuses = decision.node_statuses or {}
    assert {node: rejection(each) for node, each in statuses.items()} == wanted["preemptionNodeStatus"]


def search(world: World, pod: PodInfo) -> NDArray[np.intp] | FitError:
    """Return the rows of feasible nodes, or the error without one."""
    try:
        found, _ = find_feasible(world.framework, world.state, pod, world.snapshot, percentage=100)
    except FitError as error:
        return error
    return found.rows


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_verdict(case: Mapping[str, Any]) -> None:
    world = build_world(case["objects"], gates=case["featureGates"])
    pod, wanted = world.pods[case["pod"]], recorded(case)
    gate = world.framework.run_pre_enqueue_plugins(pod)
    assert (None if gate is None else rejection(gate)) == wanted["preEnqueue"]
    if gate is not None:
        return
    if not len(world.snapshot):
        with pytest.raises(NoNodesError) as no_nodes:
            find_feasible(world.framework, world.state, pod, world.snapshot)
        assert (wanted["feasible"], wanted["rejected"]) == ([], {})
        assert str(no_nodes.value) == wanted["message"]
        return
    check_each_node(wanted, world, pod)
    found = search(world, pod)
    if isinstance(found, FitError):
        assert (wanted["feasible"], wanted["selected"], wanted["scores"]) == ([], [], {})
        assert (rejections(world, found), str(found)) == (wanted["rejected"], wanted["message"])
        check_preemption(case, wanted, world, found, pod)
        return
    assert (wanted["message"], wanted["preemption"]) == ("", None)
    names = sorted(world.snapshot.nodes[row].name for row in found.tolist())
    if wanted["nominatedFastPath"]:
        assert names == [pod.pod.status.nominatedNodeName]
    else:
        assert names == wanted["feasible"]
    if len(names) > 1:
        check_scores(wanted, world, found, pod)
    else:
        assert (names, wanted["scores"]) == (wanted["selected"], {})
