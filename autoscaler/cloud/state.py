"""Instances of the cloud and their states. Pure; times are seconds since the epoch.

    creating -(provisioning delay)-> running -> deleting -(deletion delay, Node object deleted)-> removed

Source: what cluster-autoscaler 1.36 expects of an external gRPC provider.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import TypeAlias, TypedDict

from nominee.autoscaler.cloud.node_groups import NodeGroup
from nominee.machinery.wire.values.scalars import Json


class InstanceState(StrEnum):
    """State of an instance."""

    CREATING = "creating"
    RUNNING = "running"
    DELETING = "deleting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """An instance. Its ID is the name and the provider ID of its node."""

    id: str
    group: str
    state: InstanceState
    due: float | None
    """When the present state ends; None if it does not end by itself."""
    error_code: str = ""
    refreshes: int = 0
    """How many loops of the autoscaler may have seen that it failed."""


@dataclass(slots=True)
class GroupState:
    """The target size of a group, and its counters."""

    target: int = 0
    ordered: int = 0
    """Instances requested so far; the name of the next one is made from it."""
    refused: int = 0
    """Increases refused because of `failures`."""
    failures: int = 0
    """How much the size may be below the minimum since failed instances were given up."""
    largest: int = 0
    """The largest target size so far."""


_Row: TypeAlias = dict[str, str | float | int | None]


class StateDocument(TypedDict):
    """The state as JSON."""

    groups: dict[str, dict[str, int]]
    instances: list[_Row]


class CloudError(Exception):
    """A request that is refused. `code` is the name of a gRPC status code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class CloudState:
    """All groups and instances."""

    def __init__(self, groups: Iterable[NodeGroup]) -> None:
        self.groups: dict[str, NodeGroup] = {group.name: group for group in groups}
        self.sizes: dict[str, GroupState] = {}
        self.instances: dict[str, Instance] = {}

    # Reading

    def group(self, name: str) -> NodeGroup:
        """Return a group.

        Raises:
            CloudError: NOT_FOUND, if it does not exist.
        """
        group = self.groups.get(name)
        if group is None:
            raise CloudError("NOT_FOUND", f"node group {name!r} not found")
        return group

    def target(self, name: str) -> int:
        return self.sizes[self.group(name).name].target

    def of_group(self, name: str) -> list[Instance]:
        """Return the instances of a group, in the order in which they were requested."""
        self.group(name)
        return [instance for instance in self.instances.values() if instance.group == name]

    def group_of(self, instance_id: str) -> NodeGroup | None:
        """Return the group of an instance; None for an instance of another provider."""
        instance = self.instances.get(instance_id)
        return None if instance is None else self.groups.get(instance.group)

    def next_due(self, state: InstanceState, *, except_for: Collection[str] = ()) -> float | None:
        """Return when the next instance in this state is due, except for those with these IDs; or None."""
        rows = self.instances.values()
        dues = [row.due for row in rows if row.state is state and row.id not in except_for]
        return min((due for due in dues if due is not None), default=None)

    # Changing

    def begin(self, now: float) -> None:
        """Create the instances of new groups, and delete those of groups that do not exist any more."""
        for group in self.groups.values():
            if group.name not in self.sizes:
                self.sizes[group.name] = GroupState(target=group.target, largest=group.target)
                self._create(group, group.target, now)
        for name in [name for name in self.sizes if name not in self.groups]:
            del self.sizes[name]
            for instance in [i for i in self.instances.values() if i.group == name]:
                self.instances[instance.id] = replace(instance, state=InstanceState.DELETING, due=now)

    def increase(self, name: str, delta: int, now: float) -> None:
        """Increase the target size of a group, and request the instances.

        Raises:
            CloudError: the size would exceed the maximum, or `failures` says so.
        """
        group, size = self.group(name), self.sizes.get(name, GroupState())
        if delta <= 0:
            raise CloudError("INVALID_ARGUMENT", f"size increase must be positive, not {delta}")
        if size.target + delta > group.max:
            raise CloudError(
                "FAILED_PRECONDITION",
                f"size increase is too large, desired: {size.target + delta}, max: {group.max}",
            )
        if size.refused < group.failures.increase:
            size.refused += 1
            raise CloudError("RESOURCE_EXHAUSTED", group.failures.error_message)
        size.target += delta
        size.largest = max(size.largest, size.target)
        size.failures = max(size.failures - delta, 0)
        self._create(group, delta, now)

    def decrease_target(self, name: str, delta: int) -> None:
        """Decrease the target size of a group, and cancel its newest requests; running instances stay.

        Raises:
            CloudError: the size would be smaller than the number of running instances.
        """
        size = self.sizes[self.group(name).name]
        if delta >= 0:
            raise CloudError("INVALID_ARGUMENT", f"size decrease must be negative, not {delta}")
        instances = [i for i in self.of_group(name) if i.state is not InstanceState.DELETING]
        running = sum(i.state is InstanceState.RUNNING for i in instances)
        if size.target + delta < running:
            raise CloudError(
                "FAILED_PRECONDITION",
                f"attempt to delete existing nodes: target {size.target}, delta {delta}, existing {running}",
            )
        size.target += delta
        creating = [i for i in instances if i.state is InstanceState.CREATING]
        for instance in reversed(creating[max(size.target - running, 0) :]):
            self._note_given_up(instance)
            del self.instances[instance.id]

    def delete(self, name: str, ids: Iterable[str], now: float) -> None:
        """Delete all these instances, or none, and decrease the target size.

        The size may fall below the minimum, which only the autoscaler regards. An instance that is already
        being deleted is not counted again.

        Raises:
            CloudError: an instance does not belong to the group.
        """
        group = self.group(name)
        unique = list(dict.fromkeys(ids))
        for instance_id in unique:
            instance = self.instances.get(instance_id)
            if instance is None or instance.group != name:
                text = f"instance {instance_id} does not belong to node group {name}"
                raise CloudError("NOT_FOUND", text)
        for instance_id in unique:
            instance = self.instances[instance_id]
            if instance.state is not InstanceState.DELETING:
                self.sizes[name].target = max(self.sizes[name].target - 1, 0)
                self._note_given_up(instance)
                due = now + group.deletion_delay
                self.instances[instance_id] = replace(instance, state=InstanceState.DELETING, due=due)

    def _note_given_up(self, instance: Instance) -> None:
        """Count a failed instance that is no longer part of the size, if the size may be too small for this.

        The next loop after a failure deletes the instance, whatever the minimum is. If a later one does, the
        removal of a node may have begun before, since the size was large enough with the instance.
        """
        size, group = self.sizes[instance.group], self.groups[instance.group]
        if instance.error_code and (size.target < group.min or instance.refreshes > 1):
            size.failures += 1

    def refresh(self) -> None:
        """Note that a loop of the autoscaler begins."""
        for instance in list(self.instances.values()):
            if instance.error_code:
                self.instances[instance.id] = replace(instance, refreshes=instance.refreshes + 1)

    def advance(self, now: float) -> bool:
        """Start the instances whose provisioning delay is over; report whether there were any."""
        changed = False
        for instance in list(self.instances.values()):
            if instance.state is InstanceState.CREATING and instance.due is not None and instance.due <= now:
                self.instances[instance.id] = replace(instance, state=InstanceState.RUNNING, due=None)
                changed = True
        return changed

    def deleted(self, now: float) -> list[Instance]:
        """Return the instances whose deletion delay is over: their Node objects are to be deleted."""
        return [
            i
            for i in self.instances.values()
            if i.state is InstanceState.DELETING and i.due is not None and i.due <= now
        ]

    def remove(self, instance_id: str) -> None:
        """Remove a deleted instance, after its Node object."""
        self.instances.pop(instance_id, None)

    def _create(self, group: NodeGroup, count: int, now: float) -> None:
        size, failures = self.sizes[group.name], group.failures
        for _ in range(count):
            size.ordered += 1
            number = size.ordered
            is_failing = number <= failures.provisioning
            is_stuck = is_failing or number <= failures.provisioning + failures.stuck
            name = f"{group.name}-{number}"
            self.instances[name] = Instance(
                id=name,
                group=group.name,
                state=InstanceState.CREATING,
                due=None if is_stuck else now + group.provisioning_delay,
                error_code=failures.error_code if is_failing else "",
            )

    def summary(self) -> dict[str, Json]:
        """Return limits, sizes, failures that explain a small size, and instances that stay, by group."""
        return {
            name: {
                "min": group.min,
                "max": group.max,
                "largest": max(self.sizes[name].largest, self.sizes[name].target),
                "target": self.sizes[name].target,
                "failed": self.sizes[name].failures,
                "instances": [i.id for i in self.of_group(name) if i.state is not InstanceState.DELETING],
            }
            for name, group in self.groups.items()
        }

    # Persistence

    def to_document(self) -> StateDocument:
        return {
            "groups": {name: asdict(size) for name, size in self.sizes.items()},
            "instances": [asdict(instance) for instance in self.instances.values()],
        }

    def restore(self, document: StateDocument) -> None:
        """Replace the state by a document of `to_document`.

        Raises:
            KeyError, TypeError, ValueError: the document has another form.
        """
        self.sizes = {name: GroupState(**size) for name, size in document["groups"].items()}
        instances = map(_instance, document["instances"])
        self.instances = {instance.id: instance for instance in instances}


def _instance(row: _Row) -> Instance:
    state = InstanceState(str(row["state"]))
    return Instance(**{**row, "state": state})  # type: ignore[arg-type]  # a wrong type is an error later
