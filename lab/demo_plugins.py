"""An out-of-tree scheduler plugin, loaded as a user's plugin is (`--plugin`, and a profile that names it)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.wire.values.scalars import parse_seconds
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import Code, Handle, PreBindPlugin, Status
from nominee.scheduler.framework.types import PodInfo

DELAY = "demo.nominee.dev/pre-bind-delay"
_LOOK_SECONDS = 0.1


class SlowPreBind(PreBindPlugin):
    """A PreBind that takes as long as the pod's annotation says, as attaching a device would.

    The annotation may be shortened meanwhile. The API does not show this work: only the nomination says
    on which node the pod will run. PreBind fails if the node or the pod is deleted meanwhile.
    """

    name = "SlowPreBind"

    def __init__(self, args: Mapping[str, Any], handle: Handle) -> None:
        self._handle = handle

    def pre_bind_pre_flight(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, bool]:
        return (None if _delay(pod.pod) > 0 else Status(Code.Skip)), True

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        clock, nodes, pods = (
            self._handle.clock,
            self._handle.lister(kinds.NODE),
            self._handle.lister(kinds.POD),
        )
        began, now = clock.monotonic(), pod.pod
        while clock.monotonic() < began + _delay(now):
            node: core.Node | None = nodes.get(node_name)
            if node is None:
                return Status(Code.Error, (f'node "{node_name}" is gone',))
            await clock.sleep(_LOOK_SECONDS)
            found: core.Pod | None = pods.get(pod.name, pod.namespace)
            if found is None or found.metadata.uid != pod.uid:
                return Status(Code.Error, (f'pod "{pod.key}" is gone',))
            now = found
        return None


def _delay(pod: core.Pod) -> float:
    """Return the delay in seconds."""
    text = pod.metadata.annotations.get(DELAY)
    return parse_seconds(text) if text else 0.0
