"""`drain`: cordon a node and evict its pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

import anyio

from nominee.lab.scenario.acting.base import WAIT_SECONDS, Action, Performed
from nominee.lab.scenario.acting.errors import StepFailedError
from nominee.lab.scenario.fields.declared import Seconds, Text
from nominee.lab.scenario.steps.objects.cordon import set_unschedulable
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.pb import core

if TYPE_CHECKING:
    from nominee.lab.scenario.acting.stage import Stage

_POLL_SECONDS = 0.05
_TOO_MANY_REQUESTS = 429


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain(Action):
    """Make a node unschedulable, and evict its pods except those of DaemonSets, as kubectl drain does."""

    verb: ClassVar[str] = "drain"
    row: ClassVar[str] = (
        "`node`: make it unschedulable, and evict its pods, except those of DaemonSets, within `seconds` "
        "(default 30)"
    )
    about: ClassVar[str] = "Cordon a node and evict its pods."

    node: Text
    seconds: Seconds = WAIT_SECONDS

    def describe(self) -> str:
        return f"drain node {self.node}"

    async def perform(self, stage: Stage) -> Performed:
        """Cordon the node, and evict its pods until none is left."""
        clock = stage.clock
        deadline = clock.monotonic() + self.seconds
        await set_unschedulable(stage, self.node, is_unschedulable=True)
        # The watch of pods may lag behind.
        pods = await stage.call(
            lambda: stage.client.list(kinds.POD, field_selector=f"spec.nodeName={self.node}")
        )
        await stage.until_seen(*(() if pods is None else pods.items))
        evicted: set[str] = set()
        last = ""
        while remaining := self._pods(stage):
            if clock.monotonic() >= deadline:
                left = ", ".join(pod.metadata.name for pod in remaining)
                raise StepFailedError(f"not drained within {self.seconds:g} s: {left}; {last}".rstrip("; "))
            for pod in remaining:
                if pod.metadata.uid in evicted:
                    continue
                try:
                    # The client repeats what is refused with Retry-After, as for an unprocessed budget.
                    with anyio.move_on_after(deadline - clock.monotonic()):
                        await stage.client.evict(pod.metadata.namespace, pod.metadata.name)
                        evicted.add(pod.metadata.uid)
                except StatusError as error:
                    if is_not_found(error):
                        evicted.add(pod.metadata.uid)
                    elif error.code != _TOO_MANY_REQUESTS:
                        raise
                    last = error.message
            await clock.sleep(_POLL_SECONDS)
        return Performed(text=f"{len(evicted)} pods left")

    def _pods(self, stage: Stage) -> list[core.Pod]:
        """Return the pods that must leave the node."""
        pods = cast("list[core.Pod]", stage.world.messages(kinds.POD))
        return [
            pod
            for pod in pods
            if pod.spec.nodeName == self.node
            and not any(owner.kind == "DaemonSet" for owner in pod.metadata.ownerReferences)
        ]
