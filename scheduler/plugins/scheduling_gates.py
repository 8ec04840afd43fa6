"""Hold pods back that have scheduling gates. Source: kube-scheduler 1.36."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from google.protobuf.message import Message

from nominee.machinery.api.pb import core
from nominee.scheduler.framework.api.events import (
    ActionType,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
    expect,
    on,
)
from nominee.scheduler.framework.interface import (
    Code,
    EnqueueExtensions,
    PreEnqueuePlugin,
    Status,
)

if TYPE_CHECKING:
    from nominee.scheduler.framework.types import PodInfo


class SchedulingGates(PreEnqueuePlugin, EnqueueExtensions):
    """Holds a pod back while it has scheduling gates (KEP-3521)."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        gates = pod.pod.spec.schedulingGates
        if not gates:
            return None
        names = " ".join(gate.name for gate in gates)
        return Status(
            Code.UnschedulableAndUnresolvable, (f"waiting for scheduling gates: [{names}]",), self.name
        )

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            on(
                EventResource.Pod, ActionType.UpdatePodSchedulingGatesEliminated, self._after_gates_eliminated
            ),
        )

    def _after_gates_eliminated(self, pod: PodInfo, old: Message | None, new: Message | None) -> QueueingHint:
        _, new = expect(core.Pod, old, new)
        own = isinstance(new, core.Pod) and new.metadata.uid == pod.uid
        return QueueingHint.Queue if own else QueueingHint.Skip
