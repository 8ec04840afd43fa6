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
from nominee.scheduler.framework.api.deferred_resize import ResizePreemption
from nominee.scheduler.framework.cluster.scheduling_groups import SchedulingGroups
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.interface import ApiClient, Lister, PluginEventRecorder, Status, WaitingPod
from nominee.scheduler.framework.nominations.nominator import Nominator
from nominee.scheduler.framework.types import PodInfo


class EmptyLister:
    """The lister of a kind that is not watched."""

    changes = 0

    def get(self, name: str, namespace: str = "") -> Any | None:
        return None

    def list(self, namespace: str = "") -> list[Any]:
        return []


EMPTY_LISTER = EmptyLister()


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
    waiting_pod: Callable[[str], WaitingPod | None] = lambda uid: None
    activate: Callable[[Mapping[str, core.Pod]], None] = lambda pods: None
    note: Callable[[str, tuple[str, ...], float], None] = lambda metric, labels, value: None
    report: Callable[[PodInfo, Status], None] = lambda pod, failure: None
    """Gets the errors of plugins that change nothing for the pod (Unreserve)."""
