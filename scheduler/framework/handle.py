"""Implement the handle of plugins (`interface.Handle`) over the framework's environment.

Source: Kubernetes 1.36, pkg/scheduler/framework/runtime/framework.go, fwk.Handle.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TypeVar

from google.protobuf.message import Message

from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime.clock import Clock
from nominee.scheduler.framework.deferred_resize import ResizePreemption
from nominee.scheduler.framework.environment import EMPTY_LISTER, Environment
from nominee.scheduler.framework.interface import ApiClient, Lister, PluginEventRecorder, WaitingPod
from nominee.scheduler.framework.profile import Profile
from nominee.scheduler.framework.scheduling_groups import SchedulingGroups
from nominee.scheduler.framework.snapshot import Snapshot

M = TypeVar("M", bound=Message)


class PluginHandle:
    """The handle of one profile's plugins."""

    def __init__(self, profile: Profile, environment: Environment) -> None:
        self.profile = profile
        self.environment = environment
        self.nominator = environment.nominator

    @property
    def profile_name(self) -> str:
        return self.profile.name

    @property
    def snapshot(self) -> Snapshot:
        return self.environment.snapshot

    @property
    def scheduling_groups(self) -> SchedulingGroups:
        return self.environment.scheduling_groups

    @property
    def gates(self) -> Gates:
        return self.environment.gates

    @property
    def version(self) -> Version:
        return self.environment.version

    @property
    def resize_preemption(self) -> ResizePreemption | None:
        return self.environment.resize_preemption

    @property
    def clock(self) -> Clock:
        return self.environment.clock

    @property
    def rng(self) -> random.Random:
        return self.environment.rng

    @property
    def client(self) -> ApiClient:
        client = self.environment.client
        if client is None:
            raise RuntimeError("there is no API server here: this is a simulation")
        return client

    @property
    def recorder(self) -> PluginEventRecorder | None:
        return self.environment.recorder

    def lister(self, kind: Kind[M]) -> Lister[M]:
        """Return the lister of a kind; an empty one for kinds that are not watched."""
        return self.environment.listers.get(kind, EMPTY_LISTER)

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        return self.environment.waiting_pod(uid)

    def note(self, metric: str, labels: tuple[str, ...], value: float = 1.0) -> None:
        self.environment.note(metric, labels, value)

    def activate(self, pods: Mapping[str, core.Pod]) -> None:
        self.environment.activate(pods)
