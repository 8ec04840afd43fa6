"""What the scheduler decides about one pod, and why, node by node.

Source of the shape of `Verdict.expect`: the golden verdicts of kube-scheduler 1.36.2 under `tests/golden`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nominee.explain.world import World
from scheduler.framework.algorithm import AlgorithmError, Survey, survey
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis, FitError
from scheduler.framework.interface import Candidate, Code, FilterError, Status
from scheduler.framework.types import PodInfo
from scheduler.plugins.default_preemption import DefaultPreemption


class ExplainError(Exception):
    """A plugin failed: the scheduler would report an error and try again later."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Who says no to a node, and why. The reasons are sorted and each is there once."""

    plugin: str
    reasons: tuple[str, ...]
    code: str

    @staticmethod
    def of(status: Status, plugin: str = "") -> Rejection:
        """`plugin` counts where the status names none."""
        return Rejection(status.plugin or plugin, tuple(sorted(set(status.reasons))), status.code.name)

    def document(self) -> dict[str, Any]:
        return {"plugin": self.plugin, "reasons": list(self.reasons), "code": self.code}


@dataclass(frozen=True, slots=True)
class Preemption:
    """Whom preemption would evict. `node`: where it would nominate the pod, "" nowhere.

    `best` are the candidates as good as that one; `failures` tell why other nodes gave no candidate.
    `nomination` is what becomes of `status.nominatedNodeName`: None, it is left as it is.
    """

    node: str = ""
    candidates: tuple[Candidate, ...] = ()
    best: tuple[str, ...] = ()
    message: str = ""
    failures: Mapping[str, Rejection] = field(default_factory=dict)
    nomination: str | None = None

    def document(self) -> dict[str, Any]:
        return {
            "nominatedNode": self.node,
            "victims": next((_names(c.victims) for c in self.candidates if c.node == self.node), []),
            "candidates": {
                c.node: {"victims": _names(c.victims), "numPDBViolations": c.pdb_violations}
                for c in sorted(self.candidates, key=lambda c: c.node)
            },
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything about one pod.

    `scores` by node and plugin, weighted and normalised, only where several nodes had to be compared.
    `held` are the pods nominated to a node whose room this pod must leave to them. `wakers` are the events
    that would bring the pod back into the queue.
    """

    pod: PodInfo
    gate: Rejection | None = None
    feasible: tuple[str, ...] = ()
    rejected: Mapping[str, Rejection] = field(default_factory=dict)
    scores: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    selected: tuple[str, ...] = ()
    takes_nomination: bool = False
    preemption: Preemption | None = None
    message: str = ""
    held: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    wakers: tuple[str, ...] = ()

    def expect(self) -> dict[str, Any]:
        """As the golden files have it."""
        return {
            "feasible": list(self.feasible),
            "rejected": {node: r.document() for node, r in sorted(self.rejected.items())},
            "scores": {
                node: {"plugins": dict(sorted(by_plugin.items())), "total": sum(by_plugin.values())}
                for node, by_plugin in sorted(self.scores.items())
            },
            "selected": list(self.selected),
            "preemption": None if self.preemption is None else self.preemption.document(),
        }

    def extra(self) -> dict[str, Any]:
        """What the golden files say beside it, and what only we know; empty values are left out."""
        preemption = self.preemption or Preemption()
        by_importance = {c.node: [str(v.key) for v in c.victims] for c in preemption.candidates}
        found = {
            "preEnqueue": None if self.gate is None else self.gate.document(),
            "nominatedFastPath": self.takes_nomination,
            "message": self.message,
            "preemptionMessage": preemption.message,
            "nominatedNodeTies": list(preemption.best) if len(preemption.best) > 1 else [],
            "victimsByImportance": dict(sorted(by_importance.items())),
            "preemptionNodeStatus": {n: r.document() for n, r in sorted(preemption.failures.items())},
            "heldBy": {node: list(pods) for node, pods in sorted(self.held.items())},
            "wokenBy": list(self.wakers),
        }
        return {key: value for key, value in found.items() if value}


def explain(world: World, pod: PodInfo) -> Verdict:
    """The verdict; ExplainError when a plugin failed. A pod is to be asked about once in a world."""
    world.state = CycleState()
    gate = world.framework.run_pre_enqueue_plugins(pod)
    if gate is not None:
        rejection = Rejection.of(gate)
        return Verdict(pod, rejection, preemption=Preemption(), wakers=_wakers(world, [rejection.plugin]))
    held = _held(world, pod)
    try:
        found = survey(world.framework, world.state, pod, world.snapshot)
    except FitError as error:
        return _hopeless(world, pod, error.diagnosis, sorted(error.diagnosis.unschedulable_plugins), held)
    except (AlgorithmError, FilterError) as error:
        raise ExplainError(str(error)) from None
    if not len(found.rows):
        return _hopeless(world, pod, found.diagnosis, sorted(found.narrowing), held)
    return _chosen(world, pod, found, held)


def _chosen(world: World, pod: PodInfo, found: Survey, held: Mapping[str, tuple[str, ...]]) -> Verdict:
    """Some nodes fit: the pod's nominated one is taken, else the best ones are compared."""
    nodes = world.snapshot.nodes
    names = [nodes[row].name for row in found.rows.tolist()]
    rejected = _rejections(world, found.diagnosis, set(names), sorted(found.narrowing))
    scores: dict[str, dict[str, int]] = {}
    selected: tuple[str, ...]
    if found.nominated_row is not None:
        selected = (nodes[found.nominated_row].name,)
    elif len(names) == 1:
        selected = (names[0],)
    else:
        scores = _scores(world, pod, found, names)
        totals = {name: sum(by_plugin.values()) for name, by_plugin in scores.items()}
        best = max(totals.values())
        selected = tuple(sorted(name for name, total in totals.items() if total == best))
    takes_nomination = found.nominated_row is not None and len(names) > 1
    return Verdict(pod, None, tuple(sorted(names)), rejected, scores, selected, takes_nomination, held=held)


def _scores(world: World, pod: PodInfo, found: Survey, names: list[str]) -> dict[str, dict[str, int]]:
    rows = np.asarray(found.rows, dtype=np.intp)
    status = world.framework.run_pre_score_plugins(world.state, pod, world.snapshot, rows)
    if status is not None:
        raise ExplainError(status.message())
    by_plugin = world.framework.run_score_plugins(world.state, pod, world.snapshot, rows)
    return {
        name: {plugin: int(scores[index]) for plugin, scores in by_plugin.items()}
        for index, name in enumerate(names)
    }


def _hopeless(
    world: World,
    pod: PodInfo,
    diagnosis: Diagnosis,
    narrowing: Iterable[str],
    held: Mapping[str, tuple[str, ...]],
) -> Verdict:
    """No node fits: what preemption would do about it."""
    rejected = _rejections(world, diagnosis, set(), narrowing)
    message = str(FitError(len(world.snapshot), diagnosis))
    wakers = _wakers(world, diagnosis.unschedulable_plugins | diagnosis.pending_plugins)
    preemption = _preemption(world, pod, diagnosis)
    return Verdict(pod, rejected=rejected, preemption=preemption, message=message, held=held, wakers=wakers)


def _preemption(world: World, pod: PodInfo, diagnosis: Diagnosis) -> Preemption:
    """What the PostFilter plugins come to; nothing is carried out."""
    framework = world.framework
    result, status = framework.run_post_filter_plugins(world.state, pod, diagnosis.statuses)
    info = None if result is None else result.nominating_info
    nomination = None if info is None else info.node_name
    plugin = framework.plugins.get("DefaultPreemption")
    if status.code is Code.Error or not isinstance(plugin, DefaultPreemption):
        return Preemption(message=status.message(), nomination=nomination)
    decision = plugin.decide(world.state, pod, diagnosis.statuses)
    best = tuple(sorted(candidate.node for candidate in decision.best))
    failures = {name: Rejection.of(each) for name, each in (decision.node_statuses or {}).items()}
    return Preemption(
        best[0] if best else "", decision.candidates, best, status.message(), failures, nomination
    )


def _rejections(
    world: World, diagnosis: Diagnosis, feasible: set[str], narrowing: Iterable[str]
) -> dict[str, Rejection]:
    """Of every node that is not feasible. What PreFilter left out is put down to who narrowed."""
    narrowed_by = " ".join(narrowing)
    return {
        node.name: Rejection.of(diagnosis.statuses.get(node.name), narrowed_by)
        for node in world.snapshot.nodes
        if node.name not in feasible
    }


def _held(world: World, pod: PodInfo) -> dict[str, tuple[str, ...]]:
    """Whose nominations this pod must respect, by node."""
    found = {
        node.name: tuple(_names(world.framework.competing_nominations(pod, node.name)))
        for node in world.snapshot.nodes
    }
    return {name: pods for name, pods in found.items() if pods}


def _wakers(world: World, plugins: Iterable[str]) -> tuple[str, ...]:
    """Events that may bring back a pod that these plugins rejected."""
    registered = world.framework.events_to_register()
    found: set[str] = set()
    for name in plugins:
        events = registered.get(name, ())
        if events is None:
            found.add("every event")
        else:
            found |= {str(each.event) for each in events}
    return tuple(sorted(found))


def _names(pods: Iterable[PodInfo]) -> list[str]:
    return sorted(str(pod.key) for pod in pods)
