"""Implement the handle of plugins (`interface.Handle`) over the framework's environment.

Source: Kubernetes 1.36, pkg/scheduler/framework/runtime/framework.go, fwk.Handle.
"""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import Message

from nominee.machinery.api.kinds import Kind
from nominee.scheduler.framework.interface import ApiClient, Lister
from nominee.scheduler.framework.runtime.environment import EMPTY_LISTER, Environment
from nominee.scheduler.framework.runtime.profile import Profile

M = TypeVar("M", bound=Message)


class PluginHandle:
    """The handle of one profile's plugins."""

    def __init__(self, profile: Profile, environment: Environment) -> None:
        self.profile = profile
        self.profile_name = profile.name
        self.environment = environment
        self.snapshot = environment.snapshot
        self.nominator = environment.nominator
        self.scheduling_groups = environment.scheduling_groups
        self.gates = environment.gates
        self.version = environment.version
        self.resize_preemption = environment.resize_preemption
        self.clock = environment.clock
        self.rng = environment.rng
        self.recorder = environment.recorder
        self.waiting_pod = environment.waiting_pod
        self.activate = environment.activate

    @property
    def client(self) -> ApiClient:
        client = self.environment.client
        if client is None:
            raise RuntimeError("there is no API server here: this is a simulation")
        return client

    def lister(self, kind: Kind[M]) -> Lister[M]:
        """Return the lister of a kind; an empty one for kinds that are not watched."""
        return self.environment.listers.get(kind, EMPTY_LISTER)

    def note(self, metric: str, labels: tuple[str, ...], value: float = 1.0) -> None:
        self.environment.note(metric, labels, value)
