"""The environment of a profile's plugins: that of the process, or of a simulation."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime.clock import Clock
from nominee.scheduler.framework.deferred_resize import ResizePreemption
from nominee.scheduler.framework.interface import ApiClient, Lister, PluginEventRecorder, Status, WaitingPod
from nominee.scheduler.framework.nominator import Nominator
from nominee.scheduler.framework.scheduling_groups import SchedulingGroups
from nominee.scheduler.framework.snapshot import Snapshot
from nominee.scheduler.framework.types import PodInfo


class EmptyLister:
    """The lister of a kind that is not watched."""

    changes = 0

    def get(self, name: str, namespace: str = "") -> Any | None:
        return None

    def list(self, namespace: str = "") -> list[Any]:
        return []


EMPTY_LISTER = EmptyLister()


def _no_waiting_pod(uid: str) -> WaitingPod | None:
    return None


def _not_noted(metric: str, labels: tuple[str, ...], value: float) -> None:
    return None


def _not_reported(pod: PodInfo, failure: Status) -> None:
    return None


def _no_activation(pods: Mapping[str, core.Pod]) -> None:
    return None


@dataclass(slots=True, kw_only=True)
class Environment:
    """The state and services of a profile's plugins. A simulation leaves some fields empty."""

    snapshot: Snapshot
    nominator: Nominator
    scheduling_groups: SchedulingGroups = field(default_factory=SchedulingGroups)
    gates: Gates
    version: Version
    resize_preemption: ResizePreemption | None = None  # None: the gate is off
    clock: Clock
    rng: random.Random
    listers: Mapping[Kind[Any], Lister[Any]] = field(default_factory=dict)
    client: ApiClient | None = None
    recorder: PluginEventRecorder | None = None
    waiting_pod: Callable[[str], WaitingPod | None] = _no_waiting_pod
    activate: Callable[[Mapping[str, core.Pod]], None] = _no_activation
    note: Callable[[str, tuple[str, ...], float], None] = _not_noted
    report: Callable[[PodInfo, Status], None] = _not_reported
    """Gets the errors of plugins that change nothing for the pod (Unreserve)."""
