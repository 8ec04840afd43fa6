"""One pod, as the kubelet's core keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Final, NamedTuple

from nominee.kubelet.instructions import PodInstruction
from nominee.kubelet.pods.crash_loop import BackOff
from nominee.kubelet.pods.last_sync import LastSync
from nominee.kubelet.pods.states import TRANSITIONS, PodState, Step, Trigger
from nominee.kubelet.resize.actuation import ActuationCall
from nominee.kubelet.resize.conditions import ResizeCondition
from nominee.kubelet.resources.pod_resources import PodResources
from nominee.kubelet.runtime.sandbox import PodSandbox
from nominee.machinery.api.objects import key_of
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import Resources

TERMINAL_PHASES = frozenset({"Succeeded", "Failed"})
LOG_LENGTH_MAX: Final = 16
"""The transitions of a pod that are kept, the last ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The reason for which this kubelet ended a pod, or would not start it.

    `unready`: from now on, though its containers have yet to stop.
    """

    reason: str
    message: str
    preempted: bool = False
    unready: bool = False


class Waiting(NamedTuple):
    """The reason and message of the waiting state of a container that cannot be created."""

    reason: str
    message: str


@dataclass(slots=True)
class Sync:
    """The pod worker's part of a record: the sync that is under way, and its due times."""

    steps: tuple[Step, ...] = ()
    """The steps that are left, the present one first."""
    in_flight: PodInstruction | None = None
    """The instruction whose result is awaited."""
    due: dict[Step, float] | None = None
    """When a step may be taken, in seconds of the monotonic clock; None while no step waits."""
    back_offs: dict[str, BackOff] = field(default_factory=dict)
    """By container: the back-off of those that were started again."""
    deadline_seconds: int = 0
    """The `spec.activeDeadlineSeconds` that counts, and that its due time is about."""
    actuates: PodResources | None = None
    """The allocation that the due time of the resize is about."""
    calls: tuple[ActuationCall, ...] = ()
    """Of the actuation under way, the calls that are left."""
    actuation_began: float = 0.0
    """When the actuation under way began, in seconds of the monotonic clock."""
    last: LastSync | None = None
    """What the last sync acted on."""
    waiting: Mapping[str, Waiting] | None = None
    """By container: why it could not be created at the last try."""
    pulls: int = 0
    """How often the images could not be pulled."""
    probed_until: float | None = None
    """Until when failed probes were recorded, in seconds since the epoch."""
    answer: core.Pod | None = None
    """The API server's answer to the last status write, until the watch has caught up."""
    unanswered: core.PodStatus | None = None
    """The status of the last write, until it is answered; without an answer it may have been carried out."""


@dataclass(slots=True)
class PodRecord:
    """One pod. `pod` is the API's object, shared: never changed here."""

    pod: core.Pod
    desired: PodResources
    state: PodState = PodState.NEW
    sandbox: PodSandbox | None = None
    """What the runtime had of the pod when it was last asked."""
    outcome: Outcome | None = None
    sync: Sync = field(default_factory=Sync)
    pending: ResizeCondition | None = None
    in_progress: ResizeCondition | None = None
    allocation_version: int = 0
    """The version of the node's allocations that has this pod's."""
    failed: bool = False
    """Rejected or preempted by this kubelet, whatever the API says yet."""
    share: Resources | None = None
    """What the pod counts for on the node; None when it must be counted again."""
    log: list[str] | None = None
    """The last transitions of the pod and of its resize; None while there was none."""

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def restarts(self) -> int:
        """Return how often its containers were restarted."""
        return 0 if self.sandbox is None else self.sandbox.restarts

    @property
    def terminated(self) -> bool:
        """Return whether the pod's containers have stopped for good."""
        return self.state is PodState.TERMINATED

    @property
    def active(self) -> bool:
        """Return whether the pod takes room."""
        return not (self.failed or self.terminated or self.pod.status.phase in TERMINAL_PHASES)

    def note(self, entry: str) -> None:
        """Append to the transition log."""
        self.log = [entry] if self.log is None else [*self.log[-LOG_LENGTH_MAX + 1 :], entry]

    def fire(self, trigger: Trigger) -> None:
        """Move the pod along the table of its states, and give its sync the steps of the transition.

        Raises:
            InvalidTransitionError: the table does not allow the trigger in the pod's state.
        """
        state = self.state
        transition = TRANSITIONS.transition(state, trigger, lambda: self.no_transition(state, trigger))
        self.sync.steps = transition.effects
        if transition.to is not state:
            self.state = transition.to
            self.note(_entry(transition.to, trigger))

    def no_transition(self, state: StrEnum, trigger: StrEnum) -> str:
        """Return the text of a transition that no table has; a bug."""
        before = "; ".join(self.log or ()) or "no transition"
        return f'pod {key_of(self.pod)}: no transition from "{state}" for "{trigger}"; before: {before}'


@cache
def _entry(to: PodState, trigger: Trigger) -> str:
    """Return the log's text for a transition of the pod."""
    return f"{to} ({trigger})"
