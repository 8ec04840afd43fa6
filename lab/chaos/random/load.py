"""Random load and faults, drawn from a seed: a timetable, as data. No I/O, no clock."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nominee.lab.chaos.random.operations import (
    AddNode,
    Arm,
    ChangeTemplate,
    CreateGang,
    CreatePod,
    CreateWorkload,
    DeleteGang,
    DeletePod,
    DeleteWorkload,
    DrainNode,
    EvictWorkload,
    FailCalls,
    Fault,
    Freeze,
    JumpClock,
    Kill,
    Load,
    Nominate,
    RemoveNode,
    ResizePod,
    ScaleWorkload,
    SetPolicy,
    Timed,
)

LOAD_SHARE = 0.7
"""The share of operations that are load; the others are faults."""
POD_COUNT_MAX = 40
WORKLOAD_COUNT_MAX = 4
REPLICAS_MAX = 5
GANG_COUNT_MAX = 2
GANG_SIZES = (2, 3)
CPUS = ("100m", "500m", "1", "1500m", "2", "3")
PRIORITIES = ("", "", "", "chaos-low", "chaos-high")
KINDS = ("ReplicaSet", "Deployment")
BASE = CreateWorkload(kind="ReplicaSet", name="base", replicas=10, cpu="1", priority="chaos-low")
"""It exists from the start, and nearly fills the nodes."""
DEVICE_SHARE, VOLUME_SHARE, LIMITED_SHARE = 0.25, 0.15, 0.2
"""How many of the pods have a claim for a device, one for a volume, and are in the namespace with a quota."""
NUMBER_MAX = 1000
FAULT_SECONDS = (0.5, 3.0)
CLOCK_SECONDS_MAX = 60.0
ACTIONS = ("1*crash", "1*error(503)", "1*sleep(1000)", "3*error(500)", "25%sleep(200)")
CALL_ACTIONS = ("cut", "drop-request", "drop-response", "delay(300)", "hold", "1*relist")
SERVERS = ("apiserver", "cloud")
"""Components whose clock and calls are not disturbed."""
OF_WATCHES = frozenset({"hold", "1*relist"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The cluster: the failpoints of each process that may be disturbed, and whether it has a node group."""

    failpoints: Mapping[str, Sequence[str]]
    has_group: bool = True


@dataclass(slots=True)
class _Draw:
    """The generator, and the objects that have been created and not deleted."""

    rng: random.Random
    target: Target
    pods: list[CreatePod] = field(default_factory=list)
    workloads: list[CreateWorkload] = field(default_factory=lambda: [BASE])
    gangs: list[CreateGang] = field(default_factory=list)
    created: int = 0

    def name(self, prefix: str) -> str:
        """Return a name that no other object has."""
        self.created += 1
        return f"{prefix}-{self.created:04}"

    def number(self) -> int:
        """Return the number of an object that is chosen when the operation is performed."""
        return self.rng.randrange(NUMBER_MAX)


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
    of_group = (_add_node, _remove_node)
    rows = [row for row in _LOAD if draw.target.has_group or row[1] not in of_group]
    (choose,) = draw.rng.choices([row[1] for row in rows], [row[0] for row in rows])
    return choose(draw)


def _create_pod(draw: _Draw) -> Load:
    rng = draw.rng
    if len(draw.pods) >= POD_COUNT_MAX:
        return _delete_pod(draw)
    limited = rng.random() < LIMITED_SHARE
    made = CreatePod(
        name=draw.name("chaos"),
        cpu=rng.choice(CPUS),
        priority=rng.choice(PRIORITIES),
        grace_seconds=rng.choice((0, 1, 2)),
        # The classes of devices and volumes, and the claim's template, are in the other namespace.
        device=not limited and rng.random() < DEVICE_SHARE,
        volume=not limited and rng.random() < VOLUME_SHARE,
        limited=limited,
    )
    draw.pods.append(made)
    return made


def _delete_pod(draw: _Draw) -> Load:
    if not draw.pods:
        return _create_pod(draw)
    gone = draw.pods.pop(draw.rng.randrange(len(draw.pods)))
    return DeletePod(name=gone.name, volume=gone.volume, limited=gone.limited)


def _resize_pod(draw: _Draw) -> Load:
    if not draw.pods:
        return _create_pod(draw)
    pod = draw.rng.choice(draw.pods)
    return ResizePod(name=pod.name, cpu=draw.rng.choice(CPUS), limited=pod.limited)


def _nominate(draw: _Draw) -> Load:
    return Nominate(pod=draw.number(), node=draw.number())


def _create_workload(draw: _Draw) -> Load:
    rng = draw.rng
    if len(draw.workloads) >= WORKLOAD_COUNT_MAX:
        return _delete_workload(draw)
    made = CreateWorkload(
        kind=rng.choice(KINDS),
        name=draw.name("set"),
        replicas=rng.randint(1, REPLICAS_MAX),
        cpu=rng.choice(CPUS),
        priority=rng.choice(PRIORITIES),
    )
    draw.workloads.append(made)
    return made


def _change_workload(draw: _Draw) -> Load:
    rng = draw.rng
    if not draw.workloads:
        return _create_workload(draw)
    of = rng.choice(draw.workloads)
    change = rng.choice(("scale", "template", "evict"))
    if change == "scale":
        return ScaleWorkload(kind=of.kind, name=of.name, replicas=rng.randint(0, REPLICAS_MAX))
    if change == "template":
        return ChangeTemplate(kind=of.kind, name=of.name, cpu=rng.choice(CPUS))
    return EvictWorkload(name=of.name)


def _delete_workload(draw: _Draw) -> Load:
    if not draw.workloads:
        return _create_workload(draw)
    gone = draw.workloads.pop(draw.rng.randrange(len(draw.workloads)))
    return DeleteWorkload(kind=gone.kind, name=gone.name)


def _gang(draw: _Draw) -> Load:
    rng = draw.rng
    if len(draw.gangs) >= GANG_COUNT_MAX:
        gone = draw.gangs.pop(rng.randrange(len(draw.gangs)))
        return DeleteGang(name=gone.name, count=gone.count)
    made = CreateGang(name=draw.name("gang"), count=rng.choice(GANG_SIZES), cpu=rng.choice(CPUS))
    draw.gangs.append(made)
    return made


def _set_policy(draw: _Draw) -> Load:
    return SetPolicy(node=draw.number(), disabled=draw.rng.random() < 0.5)


def _drain(draw: _Draw) -> Load:
    return DrainNode(number=draw.number(), seconds=draw.rng.uniform(*FAULT_SECONDS))


def _add_node(draw: _Draw) -> Load:
    return AddNode()


def _remove_node(draw: _Draw) -> Load:
    return RemoveNode(number=draw.number())


_LOAD: Final[Sequence[tuple[float, Callable[[_Draw], Load]]]] = (
    (5.0, _create_pod),
    (3.0, _delete_pod),
    (2.0, _resize_pod),
    (0.7, _nominate),
    (1.0, _create_workload),
    (2.0, _change_workload),
    (0.5, _delete_workload),
    (0.7, _gang),
    (0.5, _set_policy),
    (0.7, _drain),
    (0.5, _add_node),
    (0.3, _remove_node),
)
"""Each kind of load, and its weight. One that needs an object creates the first."""


def _fault(draw: _Draw) -> Fault:
    rng = draw.rng
    component = rng.choice(sorted(draw.target.failpoints))
    seconds = round(rng.uniform(*FAULT_SECONDS), 3)
    kind = rng.choice(("kill", "freeze", "failpoint", "failpoint", "calls", "clock"))
    is_server = component.startswith(SERVERS)
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
