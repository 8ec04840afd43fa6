"""Scale-up requests of node groups, as a table that drives them. Pure.

`TRANSITIONS` maps a group's state and an event to the next state and to the effects of the event, in order. A
pair that is not in the table is a bug (`InvalidTransitionError`). A back-off can outlast the request that
failed: it has its own times (`NodeGroupBackoff`).

Source: cluster-autoscaler 1.36, clusterstate (scale-up requests and failures).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from nominee.autoscaler.options import Options
from nominee.autoscaler.planning.node_groups.backoff import NodeGroupBackoff
from nominee.machinery.runtime.state_table import StateTable, Transition


class ScaleUpState(StrEnum):
    """State of a node group."""

    IDLE = "no scale-up"
    SCALING_UP = "scaling up"


class ScaleUpEvent(StrEnum):
    """An event of a node group."""

    INCREASED = "the target size was increased"
    REFUSED = "the provider refused an increase"
    SOME_FAILED = "some instances could not be created"
    ALL_FAILED = "no requested instance is left"
    TIMED_OUT = "nodes did not register in time"
    FULFILLED = "all nodes are there"


class Effect(StrEnum):
    """A change that an event makes."""

    REQUEST = "add nodes to the request, which starts again"
    REDUCE = "subtract nodes from the request"
    REVERT = "have the target size decreased"
    BACK_OFF = "back the group off"


_S, _E, _F = ScaleUpState, ScaleUpEvent, Effect
TRANSITIONS: Final[StateTable[ScaleUpState, ScaleUpEvent, Effect]] = StateTable(
    {
        _S.IDLE: {
            _E.INCREASED: Transition(_S.SCALING_UP, (_F.REQUEST,)),
            _E.REFUSED: Transition(_S.IDLE, (_F.BACK_OFF,)),
        },
        _S.SCALING_UP: {
            _E.INCREASED: Transition(_S.SCALING_UP, (_F.REQUEST,)),
            _E.REFUSED: Transition(_S.SCALING_UP, (_F.BACK_OFF,)),
            _E.SOME_FAILED: Transition(_S.SCALING_UP, (_F.REDUCE, _F.BACK_OFF)),
            _E.ALL_FAILED: Transition(_S.IDLE, (_F.BACK_OFF,)),
            _E.TIMED_OUT: Transition(_S.IDLE, (_F.REVERT, _F.BACK_OFF)),
            _E.FULFILLED: Transition(_S.IDLE),
        },
    },
    start=_S.IDLE,
)


@dataclass(frozen=True, slots=True)
class ScaleUpRequest:
    """Nodes that have been requested; times in seconds of `Clock.monotonic`."""

    increase: int
    requested_at: float
    expected_by: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """An event of a group: how many nodes it is about, and the error of a failure.

    `now` in seconds of `Clock.monotonic`.
    """

    event: ScaleUpEvent
    now: float
    nodes: int = 0
    error_code: str = ""
    error_message: str = ""


class ScaleUpRequests:
    """The requests and back-offs of all groups."""

    def __init__(self, options: Options) -> None:
        self._provision_time = options.max_node_provision_time
        self.backoff = NodeGroupBackoff(options)
        self.requests: dict[str, ScaleUpRequest] = {}
        """By group; only of groups that are scaling up."""
        self.failures: list[tuple[str, int]] = []
        """Error code and number of nodes of each failure, for the metrics, which clear the list."""
        self._to_revert: list[tuple[str, int]] = []

    def state(self, group: str) -> ScaleUpState:
        return ScaleUpState.SCALING_UP if group in self.requests else ScaleUpState.IDLE

    def handle(self, group: str, what: Occurrence) -> None:
        """Apply an event.

        Raises:
            InvalidTransitionError: the table has no transition for it.
        """
        state = self.state(group)
        transition = TRANSITIONS.transition(
            state, what.event, lambda: f"node group {group}: {what.event!s} in state {state!s}"
        )
        for effect in transition.effects:
            self._apply(effect, group, what)
        if transition.to is ScaleUpState.IDLE:
            self.requests.pop(group, None)

    def _apply(self, effect: Effect, group: str, what: Occurrence) -> None:
        match effect:
            case Effect.REQUEST:
                former = self.requests.get(group)
                increase = what.nodes + (former.increase if former is not None else 0)
                expected_by = what.now + self._provision_time
                self.requests[group] = ScaleUpRequest(increase, what.now, expected_by)
            case Effect.REDUCE:
                former = self.requests[group]
                self.requests[group] = replace(former, increase=former.increase - what.nodes)
            case Effect.REVERT:
                self._to_revert.append((group, what.nodes))
            case Effect.BACK_OFF:
                self.failures.append((what.error_code, what.nodes))
                self.backoff.backoff(group, what.now, code=what.error_code, message=what.error_message)

    def take_to_revert(self) -> list[tuple[str, int]]:
        """Return the requests (group, nodes) that have timed out since the last call."""
        taken, self._to_revert = self._to_revert, []
        return taken
