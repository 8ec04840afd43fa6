"""Define cluster events and queueing hints, which wake a pod that was found unschedulable.

Source: kube-scheduler 1.36, framework events (KEP-4247, "Scheduler queueing hints").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntFlag, StrEnum
from typing import TYPE_CHECKING, Final

from google.protobuf.message import Message

if TYPE_CHECKING:
    from nominee.scheduler.framework.types import PodInfo


class ActionType(IntFlag):
    """The kinds of changes of an object.

    The bits are upstream's of 1.36, since events are compared as numbers. KEP-5836's two come after them; a
    plugin registers them by themselves, or a plain Update would be a smaller number and match.
    """

    Add = 1
    Delete = 2
    UpdateNodeAllocatable = 4
    UpdateNodeLabel = 8
    UpdateNodeTaint = 16
    UpdateNodeCondition = 32
    UpdateNodeAnnotation = 64
    UpdateNodeDeclaredFeature = 128
    UpdatePodLabel = 256
    UpdatePodScaleDown = 512
    UpdatePodToleration = 1024
    UpdatePodSchedulingGatesEliminated = 2048
    UpdatePodGeneratedResourceClaim = 4096
    Update = 8188
    All = 8191
    UpdatePodScaleUp = 8192
    UpdateNodePreemptionPolicy = 16384


class EventResource(StrEnum):
    """The resource an event is about.

    `Pod` is for registrations only and stands for both kinds of pods; events name one of the two.
    """

    Pod = "Pod"
    AssignedPod = "AssignedPod"
    UnscheduledPod = "UnscheduledPod"
    Node = "Node"
    PVC = "PVC"
    PV = "PV"
    StorageClass = "StorageClass"
    CSINode = "CSINode"
    CSIDriver = "CSIDriver"
    CSIStorageCapacity = "CSIStorageCapacity"
    VolumeAttachment = "VolumeAttachment"
    ResourceClaim = "ResourceClaim"
    ResourceSlice = "ResourceSlice"
    DeviceClass = "DeviceClass"
    Service = "Service"
    PodGroup = "PodGroup"
    WildCard = "*"


_POD_RESOURCES = frozenset({EventResource.AssignedPod, EventResource.UnscheduledPod})


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """An event, or (in a registration) the set of events that a plugin registers.

    `label` names events that no object caused (`UnschedulableTimeout`, `ForceActivate`).
    """

    resource: EventResource
    action: ActionType
    label: str = ""

    def is_wildcard(self) -> bool:
        """Return whether the event stands for everything; only the queue itself makes such events."""
        return self.resource is EventResource.WildCard and self.action == ActionType.All

    def matches(self, incoming: ClusterEvent) -> bool:
        """Return whether this registration covers the incoming event.

        The numeric comparison is upstream's: it keeps a plain Update from matching a registration of specific
        updates.
        """
        if self.is_wildcard():
            return True
        same = self.resource is incoming.resource or (
            self.resource is EventResource.Pod and incoming.resource in _POD_RESOURCES
        )
        return same and bool(self.action & incoming.action) and incoming.action <= self.action

    def __str__(self) -> str:
        if self.label:
            return self.label
        return f"{self.resource.value}/{_words(self.action)}"


def _words(action: ActionType) -> str:
    """Return `Add|Update`: all updates together are one word."""
    if action == ActionType.All:
        return "All"
    words = [name for name in ("Add", "Delete") if action & ActionType[name]]
    updates = action & ActionType.Update
    if updates == ActionType.Update:
        words.append("Update")
    elif updates:
        words.append(updates.name or str(int(updates)))
    return "|".join(words) or "None"


class QueueingHint(Enum):
    """The answer of a plugin: an event may make the pod schedulable, or not."""

    Skip = "QueueSkip"
    Queue = "Queue"


# (pending pod, old object or None, new object or None) -> verdict. Raises on an object it cannot judge,
# which the queue treats as Queue.
HintFunction = Callable[["PodInfo", Message | None, Message | None], QueueingHint]


@dataclass(frozen=True, slots=True)
class ClusterEventWithHint:
    """A registration; without a hint every matching event queues the pod."""

    event: ClusterEvent
    hint: HintFunction | None = None


def on(resource: EventResource, action: ActionType, hint: HintFunction | None = None) -> ClusterEventWithHint:
    """Return the registration of the actions on a resource."""
    return ClusterEventWithHint(ClusterEvent(resource, action), hint)


# Begins the errors of those hints that name themselves.
UNEXPECTED_AFTER: Final = "unexpected objects in isSchedulableAfter"


def expect(
    kind: type[Message], old: Message | None, new: Message | None, *, within: str = ""
) -> tuple[Message | None, Message | None]:
    """Check the objects of a hint as upstream's type assertion does; TypeError names the wrong one.

    `within`: what the error begins with; some of upstream's hints name themselves in it.
    """
    for obj in (new, old):
        if obj is not None and not isinstance(obj, kind):
            prefix = f"{within}: " if within else ""
            got = type(obj).DESCRIPTOR.name
            raise TypeError(f"{prefix}expected *v1.{kind.DESCRIPTOR.name}, but got *v1.{got}")
    return old, new
