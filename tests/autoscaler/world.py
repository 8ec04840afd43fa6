"""A cluster and its cloud provider in memory, as the recording had them (README of the golden data).

The API server accepts every write at once, an eviction deletes the pod and uses up its budget, and a deleted
node vanishes at once with its pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nominee.autoscaler.planning.objects import taints
from nominee.autoscaler.planning.objects.events import Event
from nominee.autoscaler.planning.objects.observation import (
    CloudView,
    ControllerKey,
    DaemonSet,
    Instance,
    NodeGroup,
    Observation,
)
from nominee.autoscaler.shell.ports import CloudError
from nominee.machinery.api import errors
from nominee.machinery.api.pb import apps, core, policy
from nominee.machinery.api.selectors import LabelSelector
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire.codec import from_json

GROUP_LABEL = "golden.test/node-group"


@dataclass
class World:
    """Both ports of the executor."""

    groups: dict[str, dict[str, Any]]
    clock: FakeClock
    nodes: dict[str, core.Node] = field(default_factory=dict)
    pods: dict[tuple[str, str], core.Pod] = field(default_factory=dict)
    budgets: dict[tuple[str, str], policy.PodDisruptionBudget] = field(default_factory=dict)
    controllers: dict[ControllerKey, int | None] = field(default_factory=dict)
    daemon_sets: dict[tuple[str, str], DaemonSet] = field(default_factory=dict)
    targets: dict[str, int] = field(default_factory=dict)
    extra_instances: dict[str, list[str]] = field(default_factory=dict)
    failed_instances: dict[str, list[Instance]] = field(default_factory=dict)
    """Instances that the provider could not create, by group."""
    fail_increase: list[str] = field(default_factory=list)
    fail_taint: list[str] = field(default_factory=list)
    fail_delete: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    status: Mapping[str, object] = field(default_factory=dict)
    """The document of the status ConfigMap."""
    evicted: list[str] = field(default_factory=list)
    cloud_deleted: list[str] = field(default_factory=list)
    increased: dict[str, int] = field(default_factory=dict)
    decreased: dict[str, int] = field(default_factory=dict)

    # Objects

    def apply(self, obj: dict[str, Any]) -> None:
        namespace = obj["metadata"].get("namespace", "default")
        name = obj["metadata"]["name"]
        kind = obj["kind"]
        if kind == "Node":
            self.nodes[name] = from_json(core.Node, obj)
        elif kind == "Pod":
            self.pods[namespace, name] = from_json(core.Pod, obj)
        elif kind == "PodDisruptionBudget":
            self.budgets[namespace, name] = from_json(policy.PodDisruptionBudget, obj)
        elif kind != "PriorityClass":
            replicas = obj.get("spec", {}).get("replicas")
            self.controllers[ControllerKey(kind, namespace, name)] = replicas
            if kind == "DaemonSet":
                self.daemon_sets[namespace, name] = DaemonSet.of(from_json(apps.DaemonSet, obj))

    def change(self, change: dict[str, Any]) -> None:
        for obj in change.get("apply", []):
            self.apply(obj)
        for row in change.get("delete", []):
            key = (row.get("namespace", "default"), row["name"])
            tables: dict[str, dict[Any, Any]] = {
                "Pod": self.pods,
                "PodDisruptionBudget": self.budgets,
            }
            if row["kind"] == "Node":
                self.nodes.pop(row["name"], None)
            elif row["kind"] in tables:
                tables[row["kind"]].pop(key, None)
            else:
                self.controllers.pop(ControllerKey(row["kind"], *key), None)
                self.daemon_sets.pop(key, None)
        for group, names in change.get("addInstances", {}).items():
            self.extra_instances.setdefault(group, []).extend(names)
        self.fail_increase = change.get("failIncrease", self.fail_increase)
        self.fail_taint = change.get("failTaint", self.fail_taint)
        self.fail_delete = change.get("failDelete", self.fail_delete)

    # The port of the API server

    def observe(self) -> Observation:
        return Observation(
            nodes=tuple(self.nodes.values()),
            pods=tuple(self.pods.values()),
            budgets=tuple(self.budgets.values()),
            controllers=dict(self.controllers),
            daemon_sets=tuple(self.daemon_sets.values()),
        )

    async def read_node(self, node: str) -> Observation:
        return self.observe()

    def _changed(self, name: str) -> core.Node:
        copy = core.Node()
        copy.CopyFrom(self.nodes[name])
        self.nodes[name] = copy
        return copy

    async def taint_to_be_deleted(self, node: str, now: float) -> None:
        if node in self.fail_taint:
            raise errors.StatusError(500, "InternalError", "update refused")
        changed = self._changed(node)
        changed.spec.taints.add(key=taints.TO_BE_DELETED, value=str(int(now)), effect="NoSchedule")
        changed.spec.unschedulable = True

    async def clean_to_be_deleted(self, node: str) -> None:
        if node in self.nodes:
            self._drop_taint(node, taints.TO_BE_DELETED)
            self.nodes[node].spec.unschedulable = False

    async def taint_deletion_candidate(self, node: str, since: float) -> None:
        self._changed(node).spec.taints.add(
            key=taints.DELETION_CANDIDATE, value=str(int(since)), effect="PreferNoSchedule"
        )

    async def clean_deletion_candidate(self, node: str) -> None:
        self._drop_taint(node, taints.DELETION_CANDIDATE)

    def _drop_taint(self, node: str, key: str) -> None:
        changed = self._changed(node)
        kept = [taint for taint in changed.spec.taints if taint.key != key]
        del changed.spec.taints[:]
        changed.spec.taints.extend(kept)

    async def evict(self, pod: core.Pod, grace_seconds: int) -> None:
        key = (pod.metadata.namespace, pod.metadata.name)
        if key not in self.pods:
            raise errors.not_found(errors.GroupResource("", "pods"), pod.metadata.name)
        covering = [b for b in self.budgets.values() if _covers(b, pod)]
        if any(budget.status.disruptionsAllowed < 1 for budget in covering):
            raise errors.too_many_requests(
                "Cannot evict pod as it would violate the pod's disruption budget.", retry_after_seconds=0
            )
        for budget in covering:
            budget.status.disruptionsAllowed -= 1
        del self.pods[key]
        self.evicted.append(pod.metadata.name)

    async def is_on_node(self, pod: core.Pod, node: str) -> bool:
        pod_now = self.pods.get((pod.metadata.namespace, pod.metadata.name))
        return pod_now is not None and pod_now.spec.nodeName == node

    def record(self, events: Sequence[Event]) -> None:
        self.events.extend(events)

    async def write_status(self, document: Mapping[str, object], now: float) -> None:
        self.status = document

    # The port of the provider

    async def refresh(self, nodes: Sequence[core.Node]) -> CloudView:
        members: dict[str, list[str]] = {name: [] for name in self.groups}
        for node in self.nodes.values():
            group = node.metadata.labels.get(GROUP_LABEL, "")
            if group in members:
                members[group].append(node.metadata.name)
        for group, names in self.extra_instances.items():
            members[group] += [name for name in names if name not in members[group]]
        failed = {instance.id: name for name, rows in self.failed_instances.items() for instance in rows}
        return CloudView(
            groups={
                name: NodeGroup(
                    id=name,
                    min=group["min"],
                    max=group["max"],
                    target=self.targets[name],
                    template=_template(group) if group["template"] else None,
                    instances=(
                        *(Instance(id=member) for member in members[name]),
                        *self.failed_instances.get(name, ()),
                    ),
                )
                for name, group in self.groups.items()
            },
            group_of_node=failed | {member: name for name, names in members.items() for member in names},
        )

    async def increase(self, group: str, delta: int) -> None:
        if group in self.fail_increase:
            raise CloudError("no capacity")
        self.targets[group] += delta
        self.increased[group] = self.increased.get(group, 0) + delta

    async def decrease_target(self, group: str, delta: int) -> None:
        self.targets[group] += delta
        self.decreased[group] = -delta

    async def delete_nodes(self, group: str, nodes: Sequence[str]) -> None:
        for name in nodes:
            if name in self.fail_delete:
                raise CloudError("cloud refused")
        for name in nodes:
            self.targets[group] -= 1
            self.cloud_deleted.append(name)
            self.nodes.pop(name, None)
            for names in self.extra_instances.values():
                if name in names:
                    names.remove(name)
            for rows in self.failed_instances.values():
                rows[:] = [instance for instance in rows if instance.id != name]
            for key in [key for key, pod in self.pods.items() if pod.spec.nodeName == name]:
                del self.pods[key]

    # Answers

    def taints(self) -> dict[str, list[str]]:
        by_node = {
            name: sorted(f"{taint.key}:{taint.effect}" for taint in node.spec.taints)
            for name, node in self.nodes.items()
        }
        return {name: taints for name, taints in by_node.items() if taints}


def _covers(budget: policy.PodDisruptionBudget, pod: core.Pod) -> bool:
    selector = LabelSelector.from_message(budget.spec.selector)
    return budget.metadata.namespace == pod.metadata.namespace and selector.matches(pod.metadata.labels)


def _template(group: dict[str, Any]) -> core.Node:
    row = group["template"]
    node = core.Node()
    node.metadata.name = f"template-{group['name']}"
    for key, text in row.get("labels", {}).items():
        node.metadata.labels[key] = text
    node.metadata.labels[GROUP_LABEL] = group["name"]
    for name, text in row["allocatable"].items():
        node.status.allocatable[name].string = text
        node.status.capacity[name].string = text
    for taint in row.get("taints", []):
        node.spec.taints.append(from_json(core.Taint, taint))
    node.status.conditions.add(type="Ready", status="True")
    return node
