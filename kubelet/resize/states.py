"""The way of a pod's resize, as a table: which cause leads from where to where.

The state is what a person sees of it: a pending reason wins over progress, since both conditions may exist at
once (a newer request waits while an older one is put into force). A step that is not in the table is a
mistake in the kubelet and is told with the pod's story.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from kubelet.resize.conditions import ERROR, INFEASIBLE, ResizeCondition

STORY_MAX = 16


class ResizeState(Enum):
    """Where a pod's resize is."""

    SETTLED = "settled"
    DEFERRED = "deferred"
    INFEASIBLE = "infeasible"
    IN_PROGRESS = "in progress"
    FAILING = "failing"


class Cause(Enum):
    """What moves it."""

    DEFER = "no room now"
    REFUSE = "never possible here"
    ALLOCATE = "allocated"
    REVERT = "desired again what is allocated"
    UNSETTLED = "runtime differs from allocation"
    ACTUATE = "runtime agrees with allocation"
    FAIL = "runtime refused"
    TERMINATE = "pod stopped"
    TAKE_OVER = "read back after a restart"


_S = ResizeState
_ANY = frozenset(ResizeState)
_PENDING = (_S.DEFERRED, _S.INFEASIBLE)
_NOT_PENDING = frozenset({_S.SETTLED, _S.IN_PROGRESS, _S.FAILING})


def _all_to(*states: ResizeState) -> Mapping[ResizeState, frozenset[ResizeState]]:
    return dict.fromkeys(_S, frozenset(states))


def _stay(*states: ResizeState) -> dict[ResizeState, frozenset[ResizeState]]:
    return {state: frozenset({state}) for state in states}


WAY: Mapping[Cause, Mapping[ResizeState, frozenset[ResizeState]]] = {
    Cause.DEFER: _all_to(_S.DEFERRED),
    Cause.REFUSE: _all_to(_S.INFEASIBLE),
    Cause.ALLOCATE: _all_to(_S.IN_PROGRESS),
    Cause.REVERT: {**_stay(*_NOT_PENDING), **dict.fromkeys(_PENDING, _NOT_PENDING)},
    Cause.UNSETTLED: {
        **_stay(_S.IN_PROGRESS, _S.FAILING, *_PENDING),
        _S.SETTLED: frozenset({_S.IN_PROGRESS}),
    },
    Cause.ACTUATE: {**_stay(*_PENDING), **dict.fromkeys(_NOT_PENDING, frozenset({_S.SETTLED}))},
    Cause.FAIL: {**_stay(*_PENDING), **dict.fromkeys(_NOT_PENDING, frozenset({_S.FAILING}))},
    Cause.TERMINATE: _all_to(_S.SETTLED),
    Cause.TAKE_OVER: {_S.SETTLED: _ANY},
}


class UnknownStepError(Exception):
    """A step that the table does not have; the text tells the pod's story."""


def state_of(pending: ResizeCondition | None, in_progress: ResizeCondition | None) -> ResizeState:
    """Where a resize is, by its conditions."""
    if pending is not None:
        return _S.INFEASIBLE if pending.reason == INFEASIBLE else _S.DEFERRED
    if in_progress is None:
        return _S.SETTLED
    return _S.FAILING if in_progress.reason == ERROR else _S.IN_PROGRESS


def check(pod: str, before: ResizeState, cause: Cause, after: ResizeState, story: Sequence[str]) -> None:
    """UnknownStepError for a step that is not in the table."""
    if after not in WAY[cause].get(before, frozenset()):
        step = f"{before.value} -> {after.value} because {cause.value}"
        raise UnknownStepError(f"pod {pod}: {step}; before: {'; '.join(story) or 'nothing'}")


def diagram() -> str:
    """The table as a Mermaid state diagram, for the documentation; steps that change nothing are left out."""
    names = [f'    state "{state.value}" as {state.name}' for state in ResizeState]
    steps = [
        f"    {before.name} --> {after.name}: {cause.value}"
        for cause, way in WAY.items()
        for before in ResizeState
        for after in ResizeState
        if after in way.get(before, ()) and after is not before
    ]
    return "\n".join(["stateDiagram-v2", *names, "    [*] --> SETTLED", *steps, ""])
