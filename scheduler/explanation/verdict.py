"""Explain the scheduler's decision about one pod, node by node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from nominee.machinery.api.objects import get_condition
from nominee.scheduler.attempts.resize import fit, fit_error, why_forbidden
from nominee.scheduler.explanation import format as output
from nominee.scheduler.framework import resource_columns
from nominee.scheduler.framework.api.deferred_resize import FITS
from nominee.scheduler.framework.api.status import error_text
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Candidate, Code, FilterError, Status
from nominee.scheduler.framework.resize_preemption import ResizePreemption, Tracking
from nominee.scheduler.framework.runtime.framework import Framework, ScoreError
from nominee.scheduler.framework.scheduling.algorithm import AlgorithmError, NoNodesError, Survey, survey
from nominee.scheduler.framework.scheduling.diagnosis import Diagnosis, FitError
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.default_preemption import DefaultPreemption
from nominee.scheduler.plugins.dynamic_resources import DynamicResources

GATE_OFF: Final = "the scheduler's feature gate InPlacePodVerticalScalingSchedulerPreemption is off"
INSUFFICIENT: Final = "Insufficient "
_MEBI: Final = 1 << 20


class ExplainError(Exception):
    """A plugin failed: the scheduler would report an error and try again later.

    The cause is set where the plugin raised an exception.
    """


@dataclass(frozen=True, slots=True)
class Rejection:
    """Which plugin rejected a node, and why. The reasons are sorted and each is there once."""

    plugin: str
    reasons: tuple[str, ...]
    code: str

    @staticmethod
    def of(status: Status, plugin: str = "") -> Rejection:
        """Return the rejection of a status; `plugin` is used where the status names none."""
        return Rejection(status.plugin or plugin, tuple(sorted(set(status.reasons))), status.code.name)


@dataclass(frozen=True, slots=True)
class Preemption:
    """The victims of a preemption. `node`: where it would nominate the pod, "" nowhere.

    `best` are the candidates as good as that one; `failures`: why other nodes are no candidates.
    `nomination` is what becomes of `status.nominatedNodeName`: None, it is left as it is.
    """

    node: str = ""
    candidates: tuple[Candidate, ...] = ()
    best: tuple[str, ...] = ()
    message: str = ""
    failures: Mapping[str, Rejection] = field(default_factory=dict)
    nomination: str | None = None


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
    resize: output.DeferredResize | None = None
    shortages: Sequence[output.Shortage] = ()


@dataclass(frozen=True, slots=True)
class _Cycle:
    """One pod's cycle. `is_live`: the scheduler runs, so plugins must not begin their follow-ups."""

    framework: Framework
    snapshot: Snapshot
    state: CycleState
    pod: PodInfo
    is_live: bool

    @property
    def node_names(self) -> list[str]:
        return [node.name for node in self.snapshot.nodes]


def explain_resize(
    framework: Framework,
    snapshot: Snapshot,
    pod: PodInfo,
    options: ResizePreemption | None,
    *,
    is_live: bool = False,
) -> Verdict:
    """Return the verdict about a deferred resize: its own node only, and the victims there.

    `options` None: the gate is off. Raises: ExplainError: a plugin failed.
    """
    cycle = _Cycle(framework, snapshot, CycleState(), pod, is_live)
    node = pod.pod.spec.nodeName
    condition = get_condition(pod.pod.status.conditions, "PodResizePending")
    forbidden = GATE_OFF if options is None else why_forbidden(pod.pod, snapshot.get(node), options)
    resize: output.DeferredResize = {
        "node": node,
        "kubeletMessage": "" if condition is None else condition.message,
        "preemptionDisabledBy": forbidden,
    }
    with _plugin_errors():
        try:
            status = fit(framework, cycle.state, pod)
        except FitError as error:
            status = error.diagnosis.statuses.get(node)
        if status is None:
            return Verdict(pod, feasible=(node,), message=FITS, resize=resize)
        failure = fit_error(framework, pod, status)
        preemption = Preemption() if forbidden else _preemption(cycle, failure.diagnosis)
        if options is None or options.tracking is not Tracking.NOMINATED_NODE_NAME:
            preemption = replace(preemption, nomination=None)  # the scheduler writes none
        rejected = {node: Rejection.of(status)}
        return Verdict(pod, rejected=rejected, preemption=preemption, message=str(failure), resize=resize)


@contextmanager
def _plugin_errors() -> Iterator[None]:
    """Raise ExplainError where a plugin failed."""
    try:
        yield
    except ExplainError:
        raise
    except (AlgorithmError, FilterError) as error:
        raise ExplainError(str(error)) from error.status.error
    except ScoreError as error:
        raise ExplainError(str(error)) from error.__cause__
    except Exception as error:  # plugins come from outside
        raise ExplainError(error_text(error)) from error


def explain(
    framework: Framework,
    snapshot: Snapshot,
    pod: PodInfo,
    *,
    is_live: bool = False,
    state: CycleState | None = None,
) -> Verdict:
    """Return the verdict; the caller has the state of the cycle, if it gives one.

    With `is_live` nothing is changed: of PostFilter only in-tree plugins are called, for their decisions
    alone. Otherwise all of them run, so that a pod can be explained once only.

    Raises:
        ExplainError: a plugin failed.
    """
    with _plugin_errors():
        return _explain(_Cycle(framework, snapshot, state or CycleState(), pod, is_live))


def _explain(cycle: _Cycle) -> Verdict:
    framework, pod = cycle.framework, cycle.pod
    gate = framework.run_pre_enqueue_plugins(pod)
    if gate is not None:
        if not gate.is_rejected:
            raise ExplainError(gate.message()) from gate.error
        rejection = Rejection.of(gate)
        wakers = _wakers(framework, [rejection.plugin])
        return Verdict(pod, rejection, preemption=Preemption(), wakers=wakers)
    try:
        found = survey(framework, cycle.state, pod, cycle.snapshot)
    except NoNodesError as error:
        return Verdict(pod, preemption=Preemption(nomination=""), message=str(error))
    except FitError as error:
        return _hopeless(cycle, error.diagnosis, sorted(error.diagnosis.unschedulable_plugins))
    if not len(found.rows):
        return _hopeless(cycle, found.diagnosis, sorted(found.narrowing))
    return _chosen(cycle, found)


def _chosen(cycle: _Cycle, found: Survey) -> Verdict:
    """Choose where some nodes fit: the pod's nominated one, else one of the best."""
    nodes = cycle.snapshot.nodes
    names = [nodes[row].name for row in found.rows.tolist()]
    rejected = _rejections(cycle, found.diagnosis, set(names), sorted(found.narrowing))
    scores: dict[str, dict[str, int]] = {}
    selected: tuple[str, ...]
    if found.nominated_row is not None:
        selected = (nodes[found.nominated_row].name,)
    elif len(names) == 1:
        selected = (names[0],)
    else:
        scores = _scores(cycle, found, names)
        totals = {name: sum(by_plugin.values()) for name, by_plugin in scores.items()}
        best = max(totals.values())
        selected = tuple(sorted(name for name, total in totals.items() if total == best))
    takes_nomination = found.nominated_row is not None and len(names) > 1
    feasible = tuple(sorted(names))
    return Verdict(cycle.pod, None, feasible, rejected, scores, selected, takes_nomination, held=_held(cycle))


def _scores(cycle: _Cycle, found: Survey, names: list[str]) -> dict[str, dict[str, int]]:
    framework, rows = cycle.framework, np.asarray(found.rows, dtype=np.intp)
    status = framework.run_pre_score_plugins(cycle.state, cycle.pod, cycle.snapshot, rows)
    if status is not None:
        raise ExplainError(status.message()) from status.error
    by_plugin = framework.run_score_plugins(cycle.state, cycle.pod, cycle.snapshot, rows)
    if not by_plugin:
        return {name: {} for name in names}
    return {
        name: {plugin: int(scores[index]) for plugin, scores in by_plugin.items()}
        for index, name in enumerate(names)
    }


def _hopeless(cycle: _Cycle, diagnosis: Diagnosis, narrowing: Iterable[str]) -> Verdict:
    """Explain that no node fits, and the preemption that would follow."""
    rejected = _rejections(cycle, diagnosis, set(), narrowing)
    return Verdict(
        cycle.pod,
        rejected=rejected,
        shortages=_shortages(cycle, rejected),
        preemption=_preemption(cycle, diagnosis),
        message=str(FitError(len(cycle.snapshot), diagnosis)),
        held=_held(cycle),
        wakers=_wakers(cycle.framework, diagnosis.unschedulable_plugins | diagnosis.pending_plugins),
    )


def _preemption(cycle: _Cycle, diagnosis: Diagnosis) -> Preemption:
    """Return the decision of the PostFilter plugins; nothing is carried out."""
    framework, state, pod = cycle.framework, cycle.state, cycle.pod
    plugin = framework.plugins.get("DefaultPreemption")
    message, nomination = "", None
    said = _said_of_claims(cycle, diagnosis) if cycle.is_live else None
    if said is not None and not said.is_rejected:
        return Preemption(message=said.message())  # the scheduler goes no further either
    if not cycle.is_live:
        result, status = framework.run_post_filter_plugins(state, pod, diagnosis.statuses)
        info = None if result is None else result.nominating_info
        message, nomination = status.message(), None if info is None else info.node_name
        if status.code is Code.Error:
            return Preemption(message=message, nomination=nomination)
    if not isinstance(plugin, DefaultPreemption):
        return Preemption(message=message if said is None else said.message(), nomination=nomination)
    decision = plugin.decide(state, pod, diagnosis.statuses)
    best = tuple(sorted(candidate.node for candidate in decision.best))
    if cycle.is_live:
        reasons = () if said is None else said.reasons
        if decision.status is not None:
            message = ", ".join((*reasons, f"preemption: {decision.status.message()}"))
        nomination = best[0] if best else "" if decision.clears_nomination else None
    failures = {name: Rejection.of(each) for name, each in (decision.node_statuses or {}).items()}
    return Preemption(best[0] if best else "", decision.candidates, best, message, failures, nomination)


def _said_of_claims(cycle: _Cycle, diagnosis: Diagnosis) -> Status | None:
    """Return the message of DynamicResources, which only decides here; None if it is not enabled."""
    for plugin in cycle.framework.post_filter_plugins:
        if isinstance(plugin, DynamicResources) and plugin.name not in cycle.state.skip_plugins:
            return plugin.post_filter(cycle.state, cycle.pod, diagnosis.statuses)[1]
    return None


def _rejections(
    cycle: _Cycle, diagnosis: Diagnosis, feasible: set[str], narrowing: Iterable[str]
) -> dict[str, Rejection]:
    """Return the rejection of every node that is not feasible; PreFilter rejects those it left out."""
    narrowed_by = " ".join(narrowing)
    return {
        name: Rejection.of(diagnosis.statuses.get(name), narrowed_by)
        for name in cycle.node_names
        if name not in feasible
    }


def _shortages(cycle: _Cycle, rejected: Mapping[str, Rejection]) -> list[output.Shortage]:
    """Return the resources of which nodes have too little, with the most that one of them has free."""
    free: dict[str, list[int]] = {}
    for name, rejection in rejected.items():
        node = cycle.snapshot.get(name)
        for reason in rejection.reasons if node is not None else ():
            resource = reason.removeprefix(INSUFFICIENT)
            column = resource_columns.column_of(resource) if reason.startswith(INSUFFICIENT) else None
            if node is not None and column is not None:
                left = node.allocatable_of(column) - node.requested_of(column)
                free.setdefault(resource, []).append(left)
    needs = {resource_columns.name_of(column): amount for column, amount in cycle.pod.fit_requests}
    return [
        {
            "resource": name,
            "nodeCount": len(found),
            "mostFree": _amount(name, max(found)),
            "request": _amount(name, needs.get(name, 0)),
        }
        for name, found in sorted(free.items())
    ]


def _amount(resource: str, amount: int) -> str:
    """Return an amount as a manifest has it: cpu, in milli-units here, in cores."""
    if resource == "cpu":
        return f"{amount / 1000:g}"
    return f"{amount // _MEBI}Mi" if amount and amount % _MEBI == 0 else str(amount)


def _held(cycle: _Cycle) -> dict[str, tuple[str, ...]]:
    """Return the nominations that this pod must respect, by node."""
    competing = cycle.framework.competing_nominations
    found = {name: tuple(_names(competing(cycle.pod, name))) for name in cycle.node_names}
    return {name: pods for name, pods in found.items() if pods}


def _wakers(framework: Framework, plugins: Iterable[str]) -> tuple[str, ...]:
    """Return the events that may requeue a pod that these plugins rejected."""
    registered = framework.events_to_register()
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
