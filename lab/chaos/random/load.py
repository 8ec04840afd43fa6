"""Random load and faults, drawn from a seed: a timetable, as data. No I/O, no clock."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

LOAD_SHARE = 0.7
"""The share of operations that are load; the others are faults."""
POD_COUNT_MAX = 60
CPUS = ("100m", "500m", "1", "1500m", "2")
PRIORITIES = ("", "", "", "chaos-low", "chaos-high")
FAULT_SECONDS = (0.5, 3.0)
CLOCK_SECONDS_MAX = 60.0
ACTIONS = ("1*crash", "1*error(503)", "1*sleep(1000)", "3*error(500)", "25%sleep(200)")
CALL_ACTIONS = ("cut", "drop-request", "drop-response", "delay(300)", "hold", "1*relist")
OF_WATCHES = frozenset({"hold", "1*relist"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePod:
    """Create a pod; `priority` is the name of a PriorityClass, "" for none."""

    name: str
    cpu: str
    priority: str
    grace_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePod:
    """Delete a pod that was created before."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizePod:
    """Change the cpu that a pod requests."""

    name: str
    cpu: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddNode:
    """Create an instance of the node group."""


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


Load = CreatePod | DeletePod | ResizePod | AddNode | DrainNode
Fault = Kill | Freeze | Arm | FailCalls | JumpClock
Operation = Load | Fault


@dataclass(frozen=True, slots=True)
class Timed:
    """An operation, and its time in seconds since the load began."""

    at: float
    operation: Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The cluster: the failpoints of each process that may be disturbed, and whether it has a node group."""

    failpoints: Mapping[str, Sequence[str]]
    has_group: bool = True


@dataclass(slots=True)
class _Draw:
    """The generator, and the pods that have been created and not deleted."""

    rng: random.Random
    target: Target
    pods: list[str] = field(default_factory=list)
    created: int = 0


def plan(seed: int, seconds: float, rate: float, target: Target) -> list[Timed]:
    """Return the operations of a run of this length, on average `rate` each second.

    The intervals are exponential. The same arguments give the same plan.
    """
    draw = _Draw(random.Random(seed), target)
    found: list[Timed] = []
    at = 0.0
    while True:
        at += draw.rng.expovariate(rate)
        if at >= seconds:
            return found
        is_load = draw.rng.random() < LOAD_SHARE or not target.failpoints
        found.append(Timed(round(at, 3), _load(draw) if is_load else _fault(draw)))


def _load(draw: _Draw) -> Load:
    rng = draw.rng
    kinds = ["create", "delete", "resize", "drain", "add"]
    weights = [5.0, 3.0, 2.0, 0.5, 0.5 if draw.target.has_group else 0.0]
    kind = rng.choices(kinds, weights)[0]
    if kind == "add":
        return AddNode()
    if kind == "drain":
        return DrainNode(number=rng.randrange(1000), seconds=rng.uniform(*FAULT_SECONDS))
    if (kind == "create" and len(draw.pods) < POD_COUNT_MAX) or not draw.pods:
        draw.created += 1
        draw.pods.append(f"chaos-{draw.created:04}")
        return CreatePod(
            name=draw.pods[-1],
            cpu=rng.choice(CPUS),
            priority=rng.choice(PRIORITIES),
            grace_seconds=rng.choice((0, 1, 2)),
        )
    if kind == "resize":
        return ResizePod(name=rng.choice(draw.pods), cpu=rng.choice(CPUS))
    return DeletePod(name=draw.pods.pop(rng.randrange(len(draw.pods))))


def _fault(draw: _Draw) -> Fault:
    rng = draw.rng
    component = rng.choice(sorted(draw.target.failpoints))
    seconds = round(rng.uniform(*FAULT_SECONDS), 3)
    kind = rng.choice(("kill", "freeze", "failpoint", "failpoint", "calls", "clock"))
    is_server = component.startswith("apiserver")
    if kind == "failpoint" and draw.target.failpoints[component]:
        failpoint = rng.choice(list(draw.target.failpoints[component]))
        return Arm(component=component, failpoint=failpoint, action=rng.choice(ACTIONS), seconds=seconds)
    if kind == "calls" and not is_server:
        action = rng.choice(CALL_ACTIONS)
        of = rng.choice(("pods", "nodes")) if action in OF_WATCHES else "*"
        return FailCalls(component=component, action=action, kind=of, seconds=seconds)
    if kind == "clock" and not is_server:
        offset = round(rng.uniform(-CLOCK_SECONDS_MAX, CLOCK_SECONDS_MAX), 3)
        return JumpClock(component=component, offset_seconds=offset, seconds=seconds)
    if kind == "freeze":
        return Freeze(component=component, seconds=seconds)
    return Kill(component=component, seconds=seconds)
