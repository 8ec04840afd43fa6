"""Define a call that writes a scheduling result into a pod's status, and its outcome.

Source: kube-scheduler 1.36, PodStatusPatchCall; KEP-5229.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from nominee.machinery.api.objects import ObjectKey, key_of
from nominee.machinery.api.pb import core
from nominee.scheduler.dispatch.states import Trigger
from nominee.scheduler.framework.nominations.nominating import NominatingInfo, NominatingMode


class Purpose(StrEnum):
    """The step that decides a call."""

    STATUS = "status"  # the result of an attempt
    NOMINATE = "nominate"  # before a binding that may take long (KEP-5278)
    CLEAR = "clear"  # a preemption takes the nominated node for a pod of higher priority


@dataclass(frozen=True, slots=True, kw_only=True)
class PodStatusPatch:
    """Write a scheduling result into a pod's status; without a reason the nomination alone.

    `pod` is as it was when the call was decided. `number` is the place in the order of all decisions, which
    `CallQueue` sets.
    """

    pod: core.Pod
    reason: str = ""
    message: str = ""
    nominating: NominatingInfo | None = None
    purpose: Purpose = Purpose.STATUS
    number: int = 0

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid

    @property
    def key(self) -> ObjectKey:
        return key_of(self.pod)

    @property
    def node_name(self) -> str | None:
        """Return the nomination that is written ("" clears it); None leaves it alone."""
        if self.nominating is None or self.nominating.mode is not NominatingMode.Override:
            return None
        return self.nominating.node_name

    def including(self, earlier: PodStatusPatch) -> PodStatusPatch:
        """Return this call with the parts of an earlier one that it leaves alone: nomination or condition.

        Only the call of a binding drops an earlier condition: the pod is no longer unschedulable.
        """
        if self.node_name is None:
            return dataclasses.replace(self, nominating=earlier.nominating)
        if self.purpose is Purpose.CLEAR and earlier.reason:
            return dataclasses.replace(earlier, pod=self.pod, nominating=self.nominating, number=self.number)
        return self


def nomination(pod: core.Pod, node_name: str) -> PodStatusPatch:
    """Return the call that nominates a pod whose binding begins."""
    info = NominatingInfo(NominatingMode.Override, node_name)
    return PodStatusPatch(pod=pod, nominating=info, purpose=Purpose.NOMINATE)


def clearing(pod: core.Pod) -> PodStatusPatch:
    """Return the call that clears the nomination of a pod whose node a preemptor takes."""
    info = NominatingInfo(NominatingMode.Override)
    return PodStatusPatch(pod=pod, nominating=info, purpose=Purpose.CLEAR)


@dataclass(frozen=True, slots=True)
class CallPatch:
    """The patch of a call, against the newest known state; None: nothing to change."""

    base: core.Pod
    patch: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call: WRITTEN, FAILED or UNREACHABLE; the pod as it is then if it is written."""

    call: PodStatusPatch
    result: Trigger
    pod: core.Pod | None = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Renominated:
    """The nomination that counts has changed: queue and nominator took the pod to be `old`; it is `new`."""

    old: core.Pod
    new: core.Pod


@dataclass(frozen=True, slots=True)
class Lost:
    """A call failed and is not made again."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Released:
    """No call of the pod waits or is under way any more."""

    uid: str


Consequence = Renominated | Lost | Released
