"""Builders of small clusters: nodes of 2 cpu in one group, pods of a ReplicaSet, a world in memory."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from nominee.autoscaler.options import Compat, Options
from nominee.autoscaler.planning.objects import annotation_keys
from nominee.autoscaler.planning.objects.observation import ControllerKey
from nominee.autoscaler.shell.ports import Counters
from nominee.machinery.api.kinds import Kind
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import FakeClock, to_time
from nominee.scheduler.framework.interface import Lister
from tests.autoscaler.harness import Harness
from tests.autoscaler.world import GROUP_LABEL, World

LONG_AGO = 3600.0
Started = list[Callable[[], Coroutine[Any, Any, None]]]


def new_world(clock: FakeClock, *, target: int, minimum: int = 0, maximum: int = 10) -> World:
    """Return a world with one group `ng1` of nodes with 2 cpu and 4Gi."""
    world = World({}, clock)
    add_group(world, "ng1", target=target, minimum=minimum, maximum=maximum)
    world.controllers[ControllerKey("ReplicaSet", "default", "web")] = 5
    return world


def add_group(world: World, name: str, *, target: int, minimum: int = 0, maximum: int = 10) -> None:
    """Add a group of nodes with 2 cpu and 4Gi."""
    allocatable = {"cpu": "2", "memory": "4Gi", "pods": "110"}
    group = {"name": name, "min": minimum, "max": maximum, "target": target}
    world.groups[name] = {**group, "template": {"allocatable": allocatable}}
    world.targets[name] = target


def node(
    world: World, name: str, *, ready: bool = True, age: float = LONG_AGO, group: str = "ng1"
) -> core.Node:
    """Add a node to the group."""
    made = core.Node()
    made.metadata.name = made.metadata.uid = made.spec.providerID = name
    made.metadata.labels[GROUP_LABEL] = group
    made.metadata.labels[annotation_keys.HOSTNAME_LABEL] = name
    made.metadata.creationTimestamp.CopyFrom(to_time(world.clock.now() - age))
    for resource, text in (("cpu", "2"), ("memory", "4Gi"), ("pods", "110")):
        made.status.capacity[resource].string = text
        made.status.allocatable[resource].string = text
    row = made.status.conditions.add(type="Ready", status="True" if ready else "False")
    row.lastTransitionTime.CopyFrom(to_time(world.clock.now() - age))
    world.nodes[name] = made
    return made


def pod(
    world: World, name: str, cpu: str, *, on: str = "", nominated: str = "", unschedulable: bool = False
) -> core.Pod:
    """Add a pod of the ReplicaSet: bound, nominated, or pending."""
    made = core.Pod()
    made.metadata.name, made.metadata.namespace, made.metadata.uid = name, "default", f"uid-{name}"
    made.metadata.creationTimestamp.CopyFrom(to_time(world.clock.now() - LONG_AGO))
    made.metadata.ownerReferences.add(kind="ReplicaSet", name="web", uid="web", controller=True)
    container = made.spec.containers.add(name="c")
    container.resources.requests["cpu"].string = cpu
    made.spec.nodeName = on
    made.status.phase = "Running" if on else "Pending"
    made.status.nominatedNodeName = nominated
    if unschedulable:
        made.status.conditions.add(type="PodScheduled", status="False", reason="Unschedulable")
    world.pods["default", name] = made
    return made


def autoscaler(
    world: World,
    compat: Compat,
    started: Started | None = None,
    *,
    listers: Mapping[Kind[Any], Lister[Any]] | None = None,
    counters: Counters | None = None,
    **flags: Any,
) -> Harness:
    """Return an autoscaler of the world. The deletions that it starts are appended to `started`: run them."""
    options = Options(compat=compat, scale_down_unneeded_time=60.0, **flags)
    started = started if started is not None else []
    return Harness(world, options, started.append, listers=listers, counters=counters)
