"""The recorded cases: reading them, and playing them against the loop with a world in memory.

The world is that of the recording (README of the golden data): the API server takes everything at once,
eviction removes the pod and spends the budget, a returned machine's node and pods vanish at once.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from autoscaler.actuation import Actuator
from autoscaler.loop import Autoscaler
from autoscaler.options import Compat, from_flags
from autoscaler.planning import taints
from autoscaler.planning.events import Event, Events
from autoscaler.planning.observation import (
    CloudView,
    ControllerKey,
    DaemonSet,
    Instance,
    NodeGroup,
    Observation,
)
from autoscaler.planning.scale_up import ScaleUpResult
from autoscaler.ports import CloudError
from autoscaler.result import LoopResult
from machinery.api import errors
from machinery.api.pb import apps, core, meta, policy
from machinery.api.selectors import LabelSelector
from machinery.features.gates import Gates, Version
from machinery.runtime.clock import FakeClock
from machinery.wire.codec import from_json
from machinery.wire.scalars import parse_time

# The recordings have "removing node" without it.
_UTILIZATION = re.compile(r", utilization: \{[^}]*\}")
GROUP_LABEL = "golden.test/node-group"
FOLDER = Path(os.environ.get("NOMINEE_GOLDEN", Path(__file__).parents[1] / "golden"))
LAST_STEP_SECONDS = 600.0


def load() -> list[dict[str, Any]]:
    """All cases."""
    text = (FOLDER / "autoscaler.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@dataclass
class World:
    """Cluster and cloud at once."""

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
    """Machines that the cloud could not create, by group."""
    fail_increase: list[str] = field(default_factory=list)
    fail_taint: list[str] = field(default_factory=list)
    fail_delete: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
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

    # The cluster's port

    def observe(self) -> Observation:
        return Observation(
            nodes=tuple(self.nodes.values()),
            pods=tuple(self.pods.values()),
            budgets=tuple(self.budgets.values()),
            controllers=dict(self.controllers),
            daemon_sets=tuple(self.daemon_sets.values()),
        )

    async def fresh(self, node: str) -> Observation:
        return self.observe()

    def _changed(self, name: str) -> core.Node:
        copy = core.Node()
        copy.CopyFrom(self.nodes[name])
        self.nodes[name] = copy
        return copy

    async def mark_to_be_deleted(self, node: str, now: float) -> None:
        if node in self.fail_taint:
            raise errors.StatusError(500, "InternalError", "update refused")
        changed = self._changed(node)
        changed.spec.taints.add(key=taints.TO_BE_DELETED, value=str(int(now)), effect="NoSchedule")
        changed.spec.unschedulable = True

    async def clean_to_be_deleted(self, node: str) -> None:
        if node in self.nodes:
            self._drop_taint(node, taints.TO_BE_DELETED)
            self.nodes[node].spec.unschedulable = False

    async def set_deletion_candidate(self, node: str, since: float | None) -> None:
        if since is None:
            self._drop_taint(node, taints.DELETION_CANDIDATE)
        else:
            self._changed(node).spec.taints.add(
                key=taints.DELETION_CANDIDATE, value=str(int(since)), effect="PreferNoSchedule"
            )

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
        found = self.pods.get((pod.metadata.namespace, pod.metadata.name))
        return found is not None and found.spec.nodeName == node

    def record(self, events: Events) -> None:
        self.events.extend(events)

    # The cloud's port

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

    # What is compared

    def taints(self) -> dict[str, list[str]]:
        keys = (taints.TO_BE_DELETED, taints.DELETION_CANDIDATE)
        found = {
            name: sorted(f"{t.key}:{t.effect}" for t in node.spec.taints if t.key in keys)
            for name, node in self.nodes.items()
        }
        return {name: taints for name, taints in found.items() if taints}


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


def seconds(text: str) -> float:
    whole, nanos = parse_time(text)
    return whole + nanos / 1e9


async def play(case: dict[str, Any], compat: Compat) -> list[dict[str, Any]]:
    """The answers of each step, shaped as the recorded ones."""
    options = from_flags({**case["options"], "compat": compat.value})
    t0 = seconds(case["t0"])
    clock = FakeClock(t0)
    world = World({group["name"]: group for group in case["nodeGroups"]}, clock)
    world.targets = {group["name"]: group["target"] for group in case["nodeGroups"]}
    for obj in case["objects"]:
        world.apply(obj)
    answers = []
    async with anyio.create_task_group() as tasks:

        def spawn(run: Callable[[], Coroutine[Any, Any, None]]) -> None:
            tasks.start_soon(run)

        actuator = Actuator(options=options, cluster=world, cloud=world, clock=clock, spawn=spawn)
        autoscaler = Autoscaler(
            options, world, world, actuator,
            gates=Gates("autoscaler", Version(1, 36)), clock=clock, rng=random.Random(0),
        )  # fmt: skip
        times = [step["at_seconds"] for step in case["steps"]]
        for index, step in enumerate(case["steps"]):
            await clock.advance(t0 + step["at_seconds"] - clock.now())
            world.change(step.get("change", {}))
            world.events, world.evicted, world.cloud_deleted = [], [], []
            world.increased, world.decreased = {}, {}
            result = await autoscaler.run_once()
            answer = _at_return(step, result, world, autoscaler)
            world.events = []
            end = (
                times[index + 1] - 0.001 if index + 1 < len(times) else step["at_seconds"] + LAST_STEP_SECONDS
            )
            await clock.advance(t0 + end - clock.now())
            answers.append(answer | _until_next(world))
        tasks.cancel_scope.cancel()
    return answers


def _at_return(
    step: dict[str, Any], result: LoopResult, world: World, autoscaler: Autoscaler
) -> dict[str, Any]:
    plan = result.scale_up
    planner = autoscaler.planner
    answer: dict[str, Any] = {
        "at_seconds": step["at_seconds"],
        "scaleUp": dict(world.increased) or None,
        "scaleUpResult": str(plan.result),
        "podsTriggeredScaleUp": sorted(pod.metadata.name for pod in plan.triggered),
        "noScaleUpReasons": {
            pod.metadata.name: {group: sorted(texts) for group, texts in reasons.items()}
            for pod, reasons in plan.remaining
        },
        "podsAwaitEvaluation": sorted(pod.metadata.name for pod in plan.awaiting),
        "unneeded": planner.unneeded(),
        "unremovable": {name: str(why) for name, why in planner.unremovable.reasons.items()},
        "utilization": {
            name: int(found.share * 10_000 + 0.5) / 10_000 for name, found in planner.utilization.items()
        },
        "scaleDownResult": result.scale_down,
        "deleted": {"empty": result.empty, "drained": result.drained},
        "taints": world.taints(),
        "unschedulable": sorted(name for name, node in world.nodes.items() if node.spec.unschedulable),
        "events": _events(world.events),
    }
    if world.decreased:
        answer["targetDecreased"] = dict(world.decreased)
    if result.error and plan.result is not ScaleUpResult.ERROR:
        answer["error"] = result.error
    return answer


def _until_next(world: World) -> dict[str, Any]:
    return {
        "evictedPods": sorted(world.evicted),
        "cloudDeleted": sorted(world.cloud_deleted),
        "laterEvents": _events(world.events),
        "taintsBeforeNextStep": world.taints(),
        "targetSizes": dict(world.targets),
    }


def _events(found: Sequence[Event]) -> list[list[str]]:
    rows = []
    for event in found:
        about = "ConfigMap/cluster-autoscaler-status"
        if event.about is not None:
            kind = "Pod" if isinstance(event.about, core.Pod) else "Node"
            about = f"{kind}/{event.about.metadata.name}"
        rows.append([event.type, event.reason, about, _UTILIZATION.sub("", event.message)])
    return sorted(rows)


def expected(case: dict[str, Any], compat: Compat) -> list[list[dict[str, Any]]]:
    """Whole-case answers that are right."""
    suffix = "_1_35" if compat is Compat.V1_35 and "expect_1_35" in case else ""
    answers: list[list[dict[str, Any]]] = case.get(f"anyOf{suffix}") or [case[f"expect{suffix}"]]
    return answers


def differences(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> list[str]:
    """What is not as recorded, one line each."""
    lines: list[str] = []
    for one, other in zip(found, wanted, strict=True):
        lines.extend(
            f"at {one['at_seconds']}s {key}:\n      is     {one.get(key)}\n      wanted {other.get(key)}"
            for key in sorted(one.keys() | other.keys())
            if one.get(key) != other.get(key)
        )
    return lines


__all__ = ["World", "differences", "expected", "load", "meta", "play"]
