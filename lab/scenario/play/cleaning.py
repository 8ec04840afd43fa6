"""Restore a cluster after a scenario, so that another one with the same `spec.cluster` can use it."""

from __future__ import annotations

from nominee.lab.scenario.clusters.cluster import ScenarioCluster
from nominee.lab.scenario.format.condition import DEFAULT_NAMESPACE
from nominee.lab.scenario.format.model import (
    ArmFailpoint,
    ComponentOptions,
    Control,
    Delete,
    InjectFault,
    ResizeGroup,
    Scenario,
    ShiftClock,
    Verb,
)
from nominee.lab.scenario.play.actions import Actions, StepFailedError
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import metadata_of

_SECONDS_MAX = 30.0
_POLL_SECONDS = 0.02
_OWNERS = (kinds.DEPLOYMENT, kinds.REPLICA_SET, kinds.JOB, kinds.DAEMON_SET, kinds.STATEFUL_SET)
_LAST = (kinds.PERSISTENT_VOLUME_CLAIM, kinds.PERSISTENT_VOLUME)
"""Deleted after the pods that use them."""


async def clean(cluster: ScenarioCluster, actions: Actions, scenario: Scenario) -> None:
    """Delete the objects that a scenario created, its nodes of the cloud, and restart what it changed.

    Raises:
        ClusterError: the cluster cannot be restored.
    """
    await _restore_processes(cluster, scenario)
    created = list(actions.created)
    for kind, namespace, name in sorted(created, key=lambda each: _order(each[0])):
        await actions.delete_object(kind, namespace, name, 0 if kind is kinds.POD else None)
    await _until_gone(cluster, actions, created)
    groups = {step.action.group for step in scenario.steps if isinstance(step.action, ResizeGroup)}
    for group in sorted(groups):
        try:
            await actions.perform(ResizeGroup(group=group, delete=True))
        except StepFailedError as error:
            raise ClusterError(f"{scenario.name} cannot be cleaned up: {error}") from None


def _order(kind: AnyKind) -> int:
    if kind in _OWNERS:
        return 0
    return 2 if kind in _LAST else 1


async def _restore_processes(cluster: ScenarioCluster, scenario: Scenario) -> None:
    """Start and stop components as `spec.cluster` says, with its options; remove failpoints and faults."""
    controlled: dict[str, list[Control]] = {}
    for step in scenario.steps:
        action = step.action
        if isinstance(action, Control):
            controlled.setdefault(action.component, []).append(action)
        elif isinstance(action, InjectFault):
            await cluster.inject_fault(InjectFault(component=action.component, action="off"))
        elif isinstance(action, ShiftClock):
            await cluster.shift_clock(action.component, 0.0)
    for component, actions in controlled.items():
        if scenario.cluster.component(component).stopped:
            await cluster.stop(component, kill=True)
        elif not _runs_as_at_first(actions):
            await cluster.restart(component, ComponentOptions(), kill=True)
    armed = {(a.component, a.name): None for s in scenario.steps if isinstance(a := s.action, ArmFailpoint)}
    await _until_ready(cluster, scenario)
    for component, name in armed:
        if not scenario.cluster.component(component).stopped:
            await cluster.arm_failpoint(component, name, "off")


def _runs_as_at_first(actions: list[Control]) -> bool:
    """Return whether a component runs after these actions, and was never started with other options."""
    last = actions[-1].verb in (Verb.START, Verb.RESUME, Verb.RESTART)
    return last and all(action.options == ComponentOptions() for action in actions)


async def _until_ready(cluster: ScenarioCluster, scenario: Scenario) -> None:
    """Wait until no process starts or is to be started again."""
    deadline = cluster.clock.monotonic() + _SECONDS_MAX
    while True:
        starting = [p.name for p in await cluster.processes() if p.state not in ("ready", "down", "paused")]
        if not starting:
            return
        if cluster.clock.monotonic() >= deadline:
            raise ClusterError(f"after {scenario.name} {', '.join(starting)} is not ready")
        await cluster.clock.sleep(_POLL_SECONDS)


async def _until_gone(
    cluster: ScenarioCluster, actions: Actions, created: list[tuple[AnyKind, str, str]]
) -> None:
    """Wait until no created object is left, nor a pod or volume that came of them."""
    namespaces = {namespace for _, namespace, _ in created if namespace} | {DEFAULT_NAMESPACE}
    deadline = cluster.clock.monotonic() + _SECONDS_MAX
    while True:
        left = [
            (kind, metadata_of(obj).namespace, metadata_of(obj).name)
            for kind in dict.fromkeys([kind for kind, _, _ in created] + [kinds.POD, kinds.PERSISTENT_VOLUME])
            for obj in (await cluster.client.list(kind)).items
            if (kind, metadata_of(obj).namespace, metadata_of(obj).name) in actions.created
            or (kind is kinds.POD and metadata_of(obj).namespace in namespaces)
            or kind is kinds.PERSISTENT_VOLUME
        ]
        if not left:
            return
        if cluster.clock.monotonic() >= deadline:
            names = ", ".join(f"{kind.kind.lower()} {name}" for kind, _, name in left[:5])
            raise ClusterError(f"not gone within {_SECONDS_MAX:g} s: {names}")
        for kind, namespace, name in left:
            if kind is kinds.POD:
                await actions.perform(
                    Delete(kind="Pod", name=name, namespace=namespace, grace_period_seconds=0)
                )
        await cluster.clock.sleep(_POLL_SECONDS)
