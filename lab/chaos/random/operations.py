"""The operations of random runs, as data: load on the cluster, and faults of its processes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePod:
    """Create a pod; `priority` is the name of a PriorityClass, "" for none.

    `device`: with a claim for a device. `volume`: with a claim for a volume that takes a second to provision.
    `limited`: in the namespace that has a quota.
    """

    name: str
    cpu: str
    priority: str
    grace_seconds: int
    device: bool = False
    volume: bool = False
    limited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePod:
    """Delete a pod that was created before, with its claim for a volume."""

    name: str
    volume: bool = False
    limited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizePod:
    """Change the cpu that a pod requests."""

    name: str
    cpu: str
    limited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateWorkload:
    """Create a ReplicaSet or Deployment, and a disruption budget (maxUnavailable 1) for its pods."""

    kind: str
    name: str
    replicas: int
    cpu: str
    priority: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleWorkload:
    """Change the number of replicas."""

    kind: str
    name: str
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTemplate:
    """Change the cpu in a workload's template: a Deployment replaces its pods, a ReplicaSet keeps them."""

    kind: str
    name: str
    cpu: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictWorkload:
    """Evict all pods of a workload at the same time."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteWorkload:
    """Delete a workload and its budget; its pods are garbage."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateGang:
    """Create a PodGroup and its pods, which are bound together or not at all."""

    name: str
    count: int
    cpu: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGang:
    """Delete the pods of a PodGroup, and the group."""

    name: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Nominate:
    """Nominate a pending pod to a node, as another component would; the numbers choose in order of name."""

    pod: int
    node: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPolicy:
    """Disable preemption for resizes on a node, or allow it again."""

    node: int
    disabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AddNode:
    """Create an instance of the node group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveNode:
    """Delete an instance of the node group, as when a machine fails; `number` chooses, in order of name."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainNode:
    """Cordon a node and evict its pods, for a time; `number` chooses among the nodes, in order of name."""

    number: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """Kill a process; start it again after a time."""

    component: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """Stop a process (SIGSTOP), and continue it after a time."""

    component: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """Arm a failpoint; disarm it after a time."""

    component: str
    failpoint: str
    action: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FailCalls:
    """Set a fault of the calls of a process to the API server, and remove it after a time."""

    component: str
    action: str
    kind: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JumpClock:
    """Shift the wall clock of a process, and set it right after a time."""

    component: str
    offset_seconds: float
    seconds: float


OfPods = CreatePod | DeletePod | ResizePod | Nominate
OfWorkloads = CreateWorkload | ScaleWorkload | ChangeTemplate | EvictWorkload | DeleteWorkload
OfGangs = CreateGang | DeleteGang
OfNodes = AddNode | RemoveNode | DrainNode | SetPolicy
Load = OfPods | OfWorkloads | OfGangs | OfNodes
Fault = Kill | Freeze | Arm | FailCalls | JumpClock
Operation = Load | Fault


@dataclass(frozen=True, slots=True)
class Timed:
    """An operation, and its time in seconds since the load began."""

    at: float
    operation: Operation
