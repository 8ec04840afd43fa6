"""Keep the state that the steps of one attempt to schedule a pod share."""

from __future__ import annotations

from dataclasses import dataclass

from nominee.scheduler.attempts.pod import Scheduled
from nominee.scheduler.attempts.states import BindingPlan, Effect, Progress
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.plugin_hooks import PluginHooks
from nominee.scheduler.framework.runtime.framework import Framework
from nominee.scheduler.framework.types import PodInfo, QueuedPodInfo
from nominee.scheduler.shell.attempt.recorder import ProfileRecorder
from nominee.scheduler.shell.attempt.waiting_pods import WaitingPod


@dataclass(frozen=True, slots=True)
class AttemptHooks:
    """The hooks of a profile's attempts: one attempt in `every` is sampled."""

    plain: PluginHooks
    sampled: PluginHooks
    every: int

    def of(self, scheduling_cycle: int) -> PluginHooks:
        """Return the hooks of the attempt with that number."""
        return self.plain if scheduling_cycle % self.every else self.sampled


@dataclass(slots=True)
class Attempt:
    """From pop to bound or back in the queue. `started`: monotonic seconds."""

    framework: Framework
    recorder: ProfileRecorder
    info: QueuedPodInfo
    pod: PodInfo  # as it was popped: a later update of the queue's entry does not change this attempt
    state: CycleState
    started: float
    progress: Progress
    scheduled: Scheduled | None = None
    waiting: WaitingPod | None = None  # on Permit
    plan: BindingPlan | None = None  # known after PreBindPreFlight
    effects: tuple[Effect, ...] = ()  # of the last transition

    @property
    def node_name(self) -> str:
        assert self.scheduled is not None, f"{self.pod.key} has no node yet"
        return self.scheduled.node_name
