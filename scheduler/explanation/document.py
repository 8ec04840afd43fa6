"""Render a verdict as a PodExplanation, the documented output (`nominee.scheduler.explanation.format`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import cast

from nominee.scheduler.explanation import format as output
from nominee.scheduler.explanation.verdict import Preemption, Rejection, Verdict
from nominee.scheduler.framework.interface import Candidate


def pod_explanation(
    verdict: Verdict, *, cluster: str = "", nodes_max: int | None = None
) -> output.PodExplanation:
    """Return the explanation of a verdict.

    Args:
        cluster: the cluster's name, where one file holds several.
        nodes_max: the length of each list of nodes; without it all nodes are listed. The selected nodes come
            first, then those with the highest scores; the node chosen for preemption is listed in any case.
    """
    feasible = sorted(_best_first(verdict)[:nodes_max])
    chosen = "" if verdict.preemption is None else verdict.preemption.node
    rejected = _rejections(verdict.rejected, chosen, nodes_max)
    nominated = verdict.pod.pod.status.nominatedNodeName
    after = None if verdict.preemption is None else verdict.preemption.nomination
    found: output.PodExplanation = {
        "apiVersion": output.API_VERSION,
        "kind": "PodExplanation",
        "pod": str(verdict.pod.key),
        "priority": verdict.pod.priority,
        "preEnqueue": None if verdict.gate is None else _rejection(verdict.gate),
        "feasibleNodes": feasible,
        "rejectedNodes": rejected,
        "scores": [_score(node, verdict.scores[node]) for node in feasible if node in verdict.scores],
        "selectedNodes": list(verdict.selected[:nodes_max]),
        "usesNominatedNode": verdict.takes_nomination,
        "message": verdict.message,
        "preemption": None if verdict.preemption is None else _preemption(verdict.preemption, nodes_max),
        "nominatedNodeName": {"before": nominated, "after": nominated if after is None else after},
        "nominatedPods": [
            {"node": node, "pods": list(pods)} for node, pods in sorted(verdict.held.items())[:nodes_max]
        ],
        "requeueEvents": list(verdict.wakers),
        "omittedNodes": len(verdict.feasible) + len(verdict.rejected) - len(feasible) - len(rejected),
    }
    if verdict.shortages:
        found["shortages"] = list(verdict.shortages)
    if verdict.resize is not None:
        found["deferredResize"] = verdict.resize
    if cluster:
        found["cluster"] = cluster
    return found


def explanation_list(items: list[output.PodExplanation]) -> output.PodExplanationList:
    """Return the explanations of several pods as one document."""
    return {"apiVersion": output.API_VERSION, "kind": "PodExplanationList", "items": items}


def _best_first(verdict: Verdict) -> list[str]:
    """Return the feasible nodes: the selected ones, then the others by their totals."""
    totals = {node: sum(by_plugin.values()) for node, by_plugin in verdict.scores.items()}
    return sorted(verdict.feasible, key=lambda n: (n not in verdict.selected, -totals.get(n, 0), n))


def _preemption(preemption: Preemption, nodes_max: int | None) -> output.Preemption:
    by_node = {candidate.node: candidate for candidate in preemption.candidates}
    candidates = [_candidate(by_node[node]) for node in _listed(by_node, preemption.node, nodes_max)]
    return {
        "nominatedNode": preemption.node,
        "victims": next((each["victims"] for each in candidates if each["node"] == preemption.node), []),
        "equalNodes": list(preemption.best[:nodes_max]),
        "candidates": candidates,
        "rejectedNodes": _rejections(preemption.failures, "", nodes_max),
        "message": preemption.message,
    }


def _candidate(candidate: Candidate) -> output.Candidate:
    return {
        "node": candidate.node,
        "victims": [str(victim.key) for victim in candidate.victims],
        "pdbViolations": candidate.pdb_violations,
    }


def _rejections(
    by_node: Mapping[str, Rejection], chosen: str, nodes_max: int | None
) -> list[output.NodeRejection]:
    return [{"node": node, **_rejection(by_node[node])} for node in _listed(by_node, chosen, nodes_max)]


def _rejection(rejection: Rejection) -> output.Rejection:
    return {
        "plugin": rejection.plugin,
        "reasons": list(rejection.reasons),
        "code": cast("output.Code", rejection.code),
    }


def _score(node: str, by_plugin: Mapping[str, int]) -> output.NodeScore:
    return {"node": node, "total": sum(by_plugin.values()), "plugins": dict(sorted(by_plugin.items()))}


def _listed(nodes: Collection[str], chosen: str, nodes_max: int | None) -> list[str]:
    """Return the first `nodes_max` names in order, and `chosen` in any case if it is among the nodes."""
    names = sorted(nodes)
    shown = names[:nodes_max]
    return shown if chosen not in nodes or chosen in shown else sorted([*shown, chosen])
