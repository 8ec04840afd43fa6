"""What machines there are: the cloud's core. No I/O and no clock; times are seconds since the epoch.

    creating -(provisioning delay)-> running -> deleting -(deletion delay, Node object gone)-> forgotten

Source: the semantics that cluster-autoscaler 1.36 expects of an external gRPC provider.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from autoscaler.cloud.node_groups import NodeGroup


class InstanceState(StrEnum):
    CREATING = "creating"
    RUNNING = "running"
    DELETING = "deleting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A machine. Its id is its node's name and provider id."""

    id: str
    group: str
    state: InstanceState
    due: float | None
    """When the present state ends; None: never by itself."""
    error_code: str = ""


@dataclass(slots=True)
class GroupState:
    """How big a group is to be, and what has been counted."""

    target: int = 0
    ordered: int = 0
    """Machines so far, which names the next one."""
    refused: int = 0
    """Orders that were refused by `failures`."""


class CloudError(Exception):
    """A request that cannot be done. `code` is the name of a gRPC status code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class CloudState:
    """All groups and machines."""

    def __init__(self, groups: Iterable[NodeGroup]) -> None:
        self.groups: dict[str, NodeGroup] = {group.name: group for group in groups}
        self.sizes: dict[str, GroupState] = {}
        self.instances: dict[str, Instance] = {}

    # Looking

    def group(self, name: str) -> NodeGroup:
        """CloudError NOT_FOUND where there is none."""
        found = self.groups.get(name)
        if found is None:
            raise CloudError("NOT_FOUND", f"there is no node group {name!r}")
        return found

    def target(self, name: str) -> int:
        return self.sizes[self.group(name).name].target

    def of_group(self, name: str) -> list[Instance]:
        """Machines of a group, in the order in which they were ordered."""
        self.group(name)
        return [instance for instance in self.instances.values() if instance.group == name]

    def group_of(self, instance_id: str) -> NodeGroup | None:
        """Whose machine it is; None for one that is not ours."""
        found = self.instances.get(instance_id)
        return None if found is None else self.groups.get(found.group)

    def next_change(self) -> float | None:
        """When `advance` will next have something to do."""
        return min((i.due for i in self.instances.values() if i.due is not None), default=None)

    # Changing

    def begin(self, now: float) -> None:
        """Makes groups that are new what they shall be at the start; machines of groups that are gone go."""
        for group in self.groups.values():
            if group.name not in self.sizes:
                self.sizes[group.name] = GroupState(target=group.target)
                self._order(group, group.target, now)
        for name in [name for name in self.sizes if name not in self.groups]:
            del self.sizes[name]
            for instance in [i for i in self.instances.values() if i.group == name]:
                self.instances[instance.id] = replace(instance, state=InstanceState.DELETING, due=now)

    def increase(self, name: str, delta: int, now: float) -> None:
        """Orders more machines; refused above the group's maximum."""
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
        self._order(group, delta, now)

    def decrease_target(self, name: str, delta: int) -> None:
        """Takes back orders that are not fulfilled yet, the newest first; a machine that runs never goes."""
        size = self.sizes[self.group(name).name]
        if delta >= 0:
            raise CloudError("INVALID_ARGUMENT", f"size decrease must be negative, not {delta}")
        living = [i for i in self.of_group(name) if i.state is not InstanceState.DELETING]
        running = sum(i.state is InstanceState.RUNNING for i in living)
        if size.target + delta < running:
            raise CloudError(
                "FAILED_PRECONDITION",
                f"attempt to delete existing nodes: target {size.target}, delta {delta}, existing {running}",
            )
        size.target += delta
        waiting = [i for i in living if i.state is InstanceState.CREATING]
        for instance in reversed(waiting[max(size.target - running, 0) :]):
            del self.instances[instance.id]

    def delete(self, name: str, ids: Iterable[str], now: float) -> None:
        """Gives machines back and lowers the target, also below the minimum, which is the autoscaler's.

        All or none: CloudError where one is not of this group. One that goes already is not counted again.
        """
        group = self.group(name)
        doomed = list(dict.fromkeys(ids))
        for instance_id in doomed:
            found = self.instances.get(instance_id)
            if found is None or found.group != name:
                raise CloudError("NOT_FOUND", f"{instance_id} is no machine of node group {name}")
        for instance_id in doomed:
            instance = self.instances[instance_id]
            if instance.state is not InstanceState.DELETING:
                self.sizes[name].target = max(self.sizes[name].target - 1, 0)
                self.instances[instance_id] = replace(
                    instance, state=InstanceState.DELETING, due=now + group.deletion_delay
                )

    def advance(self, now: float) -> bool:
        """Machines whose provisioning is over run; whether any changed."""
        changed = False
        for instance in list(self.instances.values()):
            if instance.state is InstanceState.CREATING and instance.due is not None and instance.due <= now:
                self.instances[instance.id] = replace(instance, state=InstanceState.RUNNING, due=None)
                changed = True
        return changed

    def expired(self, now: float) -> list[Instance]:
        """Machines that are off: their Node objects are to be deleted, and then they are forgotten."""
        return [
            i
            for i in self.instances.values()
            if i.state is InstanceState.DELETING and i.due is not None and i.due <= now
        ]

    def forget(self, instance_id: str) -> None:
        """The machine's Node object is gone, too."""
        self.instances.pop(instance_id, None)

    def _order(self, group: NodeGroup, count: int, now: float) -> None:
        size, failures = self.sizes[group.name], group.failures
        for _ in range(count):
            size.ordered += 1
            number = size.ordered
            failing = number <= failures.provisioning
            stuck = failing or number <= failures.provisioning + failures.stuck
            name = f"{group.name}-{number}"
            self.instances[name] = Instance(
                id=name,
                group=group.name,
                state=InstanceState.CREATING,
                due=None if stuck else now + group.provisioning_delay,
                error_code=failures.error_code if failing else "",
            )

    # Surviving

    def to_document(self) -> dict[str, Any]:
        """What must not be forgotten, for JSON."""
        return {
            "groups": {name: asdict(size) for name, size in self.sizes.items()},
            "instances": [asdict(instance) for instance in self.instances.values()],
        }

    def restore(self, document: Mapping[str, Any]) -> None:
        """Takes over what `to_document` gave; KeyError, TypeError or ValueError for anything else."""
        self.sizes = {name: GroupState(**size) for name, size in document["groups"].items()}
        instances = [
            Instance(**{**row, "state": InstanceState(row["state"])}) for row in document["instances"]
        ]
        self.instances = {instance.id: instance for instance in instances}
