"""A scheduler plugin whose PreBind takes a fixed time, for the workload DelayedBinding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Handle, PreBindPlugin, Status
from nominee.scheduler.framework.types import PodInfo


class DelayedBinding(PreBindPlugin):
    """A PreBind that takes `seconds`, as attaching a volume would; the pod is nominated meanwhile."""

    name = "DelayedBinding"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._seconds = float(args.get("seconds", 1.0))
        self._clock = handle.clock

    def pre_bind_pre_flight(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, bool]:
        return None, True

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        await self._clock.sleep(self._seconds)
        return None
