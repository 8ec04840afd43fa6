"""A plugin from outside: pods labelled `wait` wait on Permit until annotated, `reject` rejects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    ClusterEventWithHint,
    Code,
    EnqueueExtensions,
    FilterPlugin,
    Handle,
    PermitPlugin,
    Status,
)
from nominee.scheduler.framework.types import NodeInfo, PodInfo


class Turnstile(EnqueueExtensions, FilterPlugin, PermitPlugin):
    name = "Turnstile"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._seconds = float(args.get("seconds", 60))

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return ()

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        return Status(Code.Unschedulable, ("closed",)) if "reject" in pod.labels else None

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status | None, float]:
        return (Status(Code.Wait), self._seconds) if "wait" in pod.labels else (None, 0.0)
