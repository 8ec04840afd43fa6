"""Fold what a watch saw of a trial's pods into the trial's result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nominee.lab.study.plans import Plan
from nominee.machinery.api.objects import condition_is, get_condition, is_terminating
from nominee.machinery.api.pb import core
from nominee.machinery.resources import quantity

PREEMPTED = "PreemptionByScheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One state of a pod as a watch saw it; the time is in seconds of a monotonic clock."""

    at: float
    name: str
    terminating: bool
    marked: bool
    """Whether the pod has DisruptionTarget with reason PreemptionByScheduler."""
    nominated: str
    deferred: bool
    resizing: bool
    cpu: int
    """The actual cpu of the container in milli-units; 0 if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """The result of one trial; times in seconds."""

    seed: int
    point: str
    needed: int
    evicted: int
    redundant: int
    marked_only: int
    """Pods that keep the DisruptionTarget condition although they are not evicted."""
    resize_seconds: float | None
    deferred_seconds: float
    writes: int
    """Marks, deletions and nominations that the scheduler wrote, and its Events."""
    nominations: tuple[str, ...]
    """The values of the resized pod's nominatedNodeName over time, without repetitions; "" is unset."""
    nominated_seconds: float
    falls_back: bool
    """Whether the resize was Deferred for longer than the autoscaler's fallback time."""


def seen(pod: core.Pod, at: float) -> Seen:
    """Return what a trial needs of a pod's state."""
    conditions = pod.status.conditions
    disrupted = get_condition(conditions, "DisruptionTarget")
    pending = get_condition(conditions, "PodResizePending")
    statuses = pod.status.containerStatuses
    requests = statuses[0].resources.requests if statuses else {}
    return Seen(
        at=at,
        name=pod.metadata.name,
        terminating=is_terminating(pod),
        marked=disrupted is not None and disrupted.reason == PREEMPTED,
        nominated=pod.status.nominatedNodeName,
        deferred=pending is not None and pending.reason == "Deferred",
        resizing=pending is not None or condition_is(conditions, "PodResizeInProgress"),
        cpu=quantity.milli(requests["cpu"]) if "cpu" in requests else 0,
    )


@dataclass(slots=True)
class Trial:
    """A trial under observation."""

    plan: Plan
    point: str
    began: float = 0.0
    history: dict[str, list[Seen]] = field(default_factory=dict)
    events: int = 0

    def saw(self, state: Seen) -> None:
        """Add a state; states of one pod arrive in order."""
        self.history.setdefault(state.name, []).append(state)

    def names(self) -> set[str]:
        return {pod.name for pod in self.plan.pods}

    def resized_at(self) -> float | None:
        """Return when the resized pod first had its desired cpu and no resize under way."""
        for state in self.history.get(self.plan.resizer.name, ()):
            if state.at >= self.began and state.cpu == self.plan.resizer.desired_cpu and not state.resizing:
                return state.at
        return None

    def evicted(self) -> list[str]:
        """Return the names of the pods that the scheduler marked and deleted."""
        return [
            pod.name
            for pod in self.plan.candidates
            if any(state.terminating and state.marked for state in self.history.get(pod.name, ()))
        ]

    def result(self, now: float, fallback_seconds: float) -> TrialResult:
        """Return the result at the end of the trial."""
        evicted = self.evicted()
        marked = {
            pod.name
            for pod in self.plan.candidates
            if any(state.marked for state in self.history.get(pod.name, ()))
        }
        resizer = [state for state in self.history.get(self.plan.resizer.name, ()) if state.at >= self.began]
        done = self.resized_at()
        nominations = _without_repetitions(state.nominated for state in resizer)
        deferred = _duration(resizer, [state.deferred for state in resizer], now)
        changes = len(nominations) - 1 + bool(nominations and nominations[0])
        return TrialResult(
            seed=self.plan.seed,
            point=self.point,
            needed=self.plan.needed,
            evicted=len(evicted),
            redundant=max(len(evicted) - self.plan.needed, 0),
            marked_only=len(marked.difference(evicted)),
            resize_seconds=None if done is None else done - self.began,
            deferred_seconds=deferred,
            writes=len(marked) + len(evicted) + max(changes, 0) + self.events,
            nominations=nominations,
            nominated_seconds=_duration(resizer, [bool(state.nominated) for state in resizer], now),
            falls_back=deferred > fallback_seconds,
        )


def _without_repetitions(values: Iterable[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for value in values:
        if not kept or kept[-1] != value:
            kept.append(value)
    return tuple(kept)


def _duration(states: Sequence[Seen], holds: Sequence[bool], now: float) -> float:
    """Return how long a property held, in seconds; the last state lasts until `now`."""
    ends = [*(state.at for state in states), now][1:]
    return sum(end - state.at for state, end, held in zip(states, ends, holds, strict=True) if held)
