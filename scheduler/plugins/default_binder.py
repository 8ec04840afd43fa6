"""DefaultBinder: binds a pod through the API server. Source: kube-scheduler 1.36."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from machinery.errors import StatusError
from scheduler.framework.interface import BindPlugin, Handle, Status

if TYPE_CHECKING:
    from scheduler.framework.cycle_state import CycleState
    from scheduler.framework.types import PodInfo


class DefaultBinder(BindPlugin):
    name = "DefaultBinder"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._handle = handle

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        try:
            await self._handle.client.bind(pod.namespace, pod.name, node_name, uid=pod.uid)
        except StatusError as error:
            return Status.as_error(error, self.name)
        return None
