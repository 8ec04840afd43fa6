"""A scheduler plugin from outside, loaded as a user's would be (`--plugin`, and a profile that names it)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from machinery.api import kinds
from machinery.api.pb import core
from machinery.wire.scalars import parse_seconds
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.interface import Code, Handle, PreBindPlugin, Status
from scheduler.framework.types import PodInfo

DELAY = "demo.nominee.dev/pre-bind-delay"
_LOOK_SECONDS = 0.1


class SlowPreBind(PreBindPlugin):
    """Binding waits as long as the pod's annotation says: a device is attached, a network is set up.

    The annotation may be changed meanwhile, to have it done sooner. Nothing of this shows in the API, so that
    nothing but the nomination tells where the pod will run. Fails when the node goes meanwhile.
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
            now = pods.get(now.metadata.name, now.metadata.namespace) or now
        return None


def _delay(pod: core.Pod) -> float:
    """Seconds."""
    text = pod.metadata.annotations.get(DELAY)
    return parse_seconds(text) if text else 0.0
