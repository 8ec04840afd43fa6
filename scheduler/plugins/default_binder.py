"""DefaultBinder: bind a pod through the API server. Source: kube-scheduler 1.36."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nominee.machinery.api.errors import StatusError
from nominee.scheduler.framework.api.io_steps import BindPod, IoSteps
from nominee.scheduler.framework.interface import BindPlugin, Handle, Status

if TYPE_CHECKING:
    from nominee.scheduler.framework.cycle_state import CycleState
    from nominee.scheduler.framework.types import PodInfo


class DefaultBinder(BindPlugin):
    """Binds a pod through the API server."""

    name = "DefaultBinder"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        """Take no arguments."""

    def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> IoSteps[Status | None]:
        try:
            yield BindPod(pod.namespace, pod.name, node_name, pod.uid)
        except StatusError as error:
            return Status.as_error(error, self.name)
        return None
