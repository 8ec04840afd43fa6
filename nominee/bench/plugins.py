"""A scheduler plugin that makes binding take its time, for the workload DelayedBinding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.framework.cycle_state import CycleState
from scheduler.framework.interface import Handle, PreBindPlugin, Status
from scheduler.framework.types import PodInfo


class DelayedBinding(PreBindPlugin):
    """Every pod's PreBind takes `seconds`, as if a volume were attached; its node is nominated meanwhile."""

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
