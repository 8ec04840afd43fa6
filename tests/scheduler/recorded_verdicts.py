"""Convert between explanations and the verdicts recorded in scheduler.jsonl (`expect` and `extra`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nominee.scheduler.explanation.format import NodeRejection, PodExplanation, Rejection

_NOT_COMPARED = frozenset(
    {
        # Remarks of the people who recorded.
        "note",
        "needsApiserverDefaulting",
        # Intermediate results of the recorded scheduler; `rejected` and the messages follow from them.
        "preFilter",
        "preFilterNodes",
        "notEligibleToPreempt",
    }
)


def recorded(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a case recorded, with every field that is compared; a field it leaves out is empty."""
    expect, extra = case["expect"], case["extra"]
    compared: dict[str, Any] = {
        "preEnqueue": None,
        "nominatedFastPath": False,
        "message": "",
        "preemptionMessage": "",
        "nominatedNodeTies": [],
        "victimsByImportance": {},
        "preemptionNodeStatus": {},
    }
    unknown = set(extra) - set(compared) - _NOT_COMPARED - {"keepsNominatedNode"}
    assert not unknown, f"fields of the recording that no test compares: {unknown}"
    compared |= {name: value for name, value in extra.items() if name in compared}
    for name in ("rejected", "preemptionNodeStatus"):
        source = expect if name in expect else compared
        compared[name] = {node: _sorted(each) for node, each in source[name].items()}
    if compared["preEnqueue"] is not None:
        compared["preEnqueue"] = _sorted(compared["preEnqueue"])
    return {**expect, **compared}


def in_recorded_form(explanation: PodExplanation) -> dict[str, Any]:
    """Return an explanation in the form of `recorded`."""
    preemption, gate = explanation["preemption"], explanation["preEnqueue"]
    candidates = [] if preemption is None else preemption["candidates"]
    ties = [] if preemption is None else preemption["equalNodes"]
    return {
        "feasible": explanation["feasibleNodes"],
        "rejected": _by_node(explanation["rejectedNodes"]),
        "scores": {
            score["node"]: {"plugins": score["plugins"], "total": score["total"]}
            for score in explanation["scores"]
        },
        "selected": explanation["selectedNodes"],
        "preemption": None
        if preemption is None
        else {
            "nominatedNode": preemption["nominatedNode"],
            "victims": sorted(preemption["victims"]),
            "candidates": {
                each["node"]: {"victims": sorted(each["victims"]), "numPDBViolations": each["pdbViolations"]}
                for each in candidates
            },
        },
        "preEnqueue": None if gate is None else _sorted(gate),
        "nominatedFastPath": explanation["usesNominatedNode"],
        "message": explanation["message"],
        "preemptionMessage": "" if preemption is None else preemption["message"],
        "nominatedNodeTies": ties if len(ties) > 1 else [],
        "victimsByImportance": {each["node"]: each["victims"] for each in candidates},
        "preemptionNodeStatus": {} if preemption is None else _by_node(preemption["rejectedNodes"]),
    }


def _by_node(rejections: Sequence[NodeRejection]) -> dict[str, Any]:
    return {each["node"]: _sorted(each) for each in rejections}


def _sorted(rejection: Rejection | Mapping[str, Any]) -> dict[str, Any]:
    """Return a rejection with its reasons in order: upstream's order is that of a Go map."""
    return {
        "plugin": rejection["plugin"],
        "reasons": sorted(rejection["reasons"]),
        "code": rejection["code"],
    }
