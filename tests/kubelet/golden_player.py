"""Plays a sequence of kubelet.jsonl through the allocation core.

The player is what the harness of the golden data was: the API server's objects, the pod workers and the
runtime. Pods are real messages, and their status is written by the kubelet's own code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubelet import events, instructions
from kubelet.allocation.manager import handle
from kubelet.node.state import NodeSettings, NodeState, PodRecord
from kubelet.resources.pod_resources import PodResources, desired_resources
from kubelet.runtime.sandbox import Container, PodSandbox
from kubelet.status.resize_conditions import write_resize_conditions
from kubelet.status.resource_status import write_resources
from machinery.api.pb import core
from tests.kubelet.golden import Case

CREATED = 1_700_000_000


@dataclass
class Seen:
    """What one step caused."""

    evaluated: list[Case] = field(default_factory=list)
    syncs: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    preempted: list[str] = field(default_factory=list)
    trigger: str | None = None


class Player:
    """One node, driven by the steps of a sequence."""

    def __init__(self, case: Case) -> None:
        row = case["node"]
        self.swapping: set[str] = set()
        self.settings = NodeSettings(
            cpu_manager_policy=row.get("cpuManagerPolicy", "none"),
            memory_manager_policy=row.get("memoryManagerPolicy", "None"),
            uses_swap=lambda pod, container: container in self.swapping,
        )
        self.node = NodeState(node_message(row, None), self.settings, sources_ready=True)
        self.api: dict[str, core.Pod] = {}
        self.actuated: dict[str, PodResources] = {}
        self.states: dict[str, tuple[str, str, str]] = {}
        self.now = float(CREATED)
        self.seen = Seen()

    def step(self, step: Case) -> Case:
        """Plays one step and returns what the golden file tells of it."""
        self.seen = Seen()
        self.now += 1.0
        getattr(self, f"op_{step['op']}")(step)
        result: Case = {"expect": self.expectations(), "queue": [self.name(uid) for uid in self.node.queue]}
        for key in ("evaluated", "syncs", "events", "preempted", "trigger"):
            if getattr(self.seen, key):
                result[key] = getattr(self.seen, key)
        return result

    # The steps

    def op_add(self, step: Case) -> None:
        pods = [self.pod_message(row) for row in step["pods"]]
        for pod in pods:
            self.api[pod.metadata.name] = pod
        self.add(pods)

    def op_resize(self, step: Case) -> None:
        pod = self.change(step)
        self.send(events.PodUpdated(pod=pod, now=self.now))

    def op_api_resize_while_down(self, step: Case) -> None:
        self.change(step)

    def op_sync(self, step: Case) -> None:
        for name in step["names"]:
            self.sync(name)

    def op_actuate(self, step: Case) -> None:
        for name in step["names"]:
            record = self.record(name)
            if record is not None:
                self.actuated[record.uid] = self.node.allocated(record)
            self.sync(name)

    def op_actuate_error(self, step: Case) -> None:
        self.send(events.ActuationFailed(uid=f"uid-{step['pod']}", error=step["error"], now=self.now))

    def op_terminate(self, step: Case) -> None:
        name = step["pod"]
        self.send(events.PodTerminated(uid=f"uid-{name}", now=self.now))
        self.states[name] = ("terminal", "", "")
        pod = self.copy(name)
        pod.status.phase = step["phase"]
        self.reconcile(pod)

    def op_remove(self, step: Case) -> None:
        for name in step["names"]:
            self.api.pop(name, None)
            self.actuated.pop(f"uid-{name}", None)
            self.states.pop(name, None)
        self.send(events.PodsRemoved(uids=tuple(f"uid-{name}" for name in step["names"]), now=self.now))

    def op_tick(self, step: Case) -> None:
        self.send(events.RetryDue(now=self.now))

    def op_node(self, step: Case) -> None:
        self.send(events.NodeChanged(node=node_message(step["node"], self.node.node)))

    def op_restart(self, step: Case, *, keep: bool = True) -> None:
        allocations = dict(self.node.allocations) if keep else {}
        self.node = NodeState(self.node.node, self.settings)
        self.send(events.AllocationsRestored(allocations=allocations))
        self.add(list(self.api.values()))
        self.send(events.SourcesReady())

    def op_restart_lost_checkpoint(self, step: Case) -> None:
        self.op_restart(step, keep=False)

    def op_cleanup(self, step: Case) -> None:
        gone = [uid for uid in self.node.allocations if uid not in self.node.pods]
        assert not gone

    # What the harness around the core does

    def add(self, pods: list[core.Pod]) -> None:
        known = set(self.actuated)
        self.send(events.PodsAdded(pods=tuple(pods), now=self.now))
        for pod in pods:
            record = self.node.pods[pod.metadata.uid]
            if record.failed or not record.active or record.uid in known:
                continue
            self.states[pod.metadata.name] = ("active", "", "")
            self.actuated[record.uid] = self.node.allocated(record)
            self.write_status(pod.metadata.name)
            record.pod, record.counted = self.api[pod.metadata.name], None

    def change(self, step: Case) -> core.Pod:
        pod = self.copy(step["pod"])
        before = desired_resources(pod)
        for container in (*pod.spec.initContainers, *pod.spec.containers):
            row = step.get("containers", {}).get(container.name)
            if row is not None:
                fill_resources(container.resources, row)
        if "podResources" in step:
            fill_resources(pod.spec.resources, step["podResources"])
        if not desired_resources(pod).same(before):
            pod.metadata.generation += 1
        self.api[step["pod"]] = pod
        return pod

    def sync(self, name: str) -> None:
        record = self.record(name)
        if record is None:
            return
        if record.active:
            settled = self.actuated[record.uid].same(self.node.allocated(record))
            self.send(events.PodSynced(uid=record.uid, settled=settled, now=self.now))
        elif not record.terminated:
            self.send(events.PodTerminated(uid=record.uid, now=self.now))
        self.reconcile(self.write_status(name))

    def write_status(self, name: str) -> core.Pod:
        record = self.record(name)
        assert record is not None
        pod = self.copy(name)
        state, reason, message = self.states[name]
        if state in ("rejected", "preempted"):
            pod.status.phase, pod.status.reason, pod.status.message = "Failed", reason, message
        write_resize_conditions(pod.status, record.pending, record.in_progress)
        if record.active:
            pod.status.phase = "Running"
            write_containers(pod, self.node.allocated(record), self.actuated[record.uid])
        self.api[name] = pod
        return pod

    def reconcile(self, pod: core.Pod) -> None:
        self.api[pod.metadata.name] = pod
        self.send(events.PodReconciled(pod=pod, now=self.now))

    def send(self, event: events.Event) -> None:
        for action in handle(self.node, event):
            self.perform(action)

    def perform(self, action: instructions.Instruction) -> None:
        seen = self.seen
        match action:
            case instructions.Evaluated():
                row: Case = {
                    "pod": self.name(action.uid),
                    "operation": action.operation,
                    "admit": action.admitted,
                }
                if not action.admitted:
                    row |= {"reason": action.reason, "message": action.message}
                seen.evaluated.append(row)
            case instructions.SyncPod(uid):
                seen.syncs.append(self.name(uid))
            case instructions.RecordEvent():
                name = action.pod.metadata.name
                seen.events.append(f"{name} {action.type} {action.reason} {action.message}")
            case instructions.Retried(trigger):
                seen.trigger = trigger
            case instructions.KillPod(uid, reason, message):
                seen.preempted.append(self.name(uid))
                self.fail(self.name(uid), "preempted", reason, message)
            case instructions.RejectPod(uid, reason, message):
                self.fail(self.name(uid), "rejected", reason, message)
            case _:
                pass

    def fail(self, name: str, state: str, reason: str, message: str) -> None:
        self.states[name] = (state, reason, message)
        pod = self.copy(name)
        pod.status.phase, pod.status.reason, pod.status.message = "Failed", reason, message
        write_resize_conditions(pod.status, None, None)  # a terminating pod's status has none
        self.api[name] = pod

    # What is compared

    def expectations(self) -> Case:
        return {name: self.expectation(name) for name in sorted(self.api)}

    def expectation(self, name: str) -> Case:
        record = self.record(name)
        assert record is not None
        state, reason, message = self.states.get(name, ("active", "", ""))
        row: Case = {"state": state, "generation": self.api[name].metadata.generation, "resize": "none"}
        if reason:
            row["reason"] = reason
        for key, held in (("inProgress", record.in_progress), ("pending", record.pending)):
            if held is None:
                continue
            row[key] = {
                "reason": held.reason,
                "message": held.message,
                "observedGeneration": held.observed_generation,
            }
            row["resize"] = held.reason if key == "pending" else "InProgress"
            if state == "active":
                message = held.message
        row["message"] = message
        allocation = self.node.allocations.get(record.uid)
        row["allocated"] = {} if allocation is None else shown(allocation)
        if allocation is not None and allocation.pod is not None:
            row["podAllocated"] = allocation.pod.to_json()
        actuated = self.actuated.get(record.uid)
        if actuated is not None and allocation is not None and not actuated.same(allocation):
            row["actuated"] = {
                container: requirements.to_json()
                for container, requirements in actuated.containers
                if not requirements.same(allocation.of(container))
            }
        return row

    # Small things

    def record(self, name: str) -> PodRecord | None:
        return self.node.pods.get(f"uid-{name}")

    def copy(self, name: str) -> core.Pod:
        pod = core.Pod()
        pod.CopyFrom(self.api[name])
        return pod

    @staticmethod
    def name(uid: str) -> str:
        return uid.removeprefix("uid-")

    def pod_message(self, row: Case) -> core.Pod:
        pod = core.Pod()
        pod.metadata.name, pod.metadata.namespace = row["name"], "default"
        pod.metadata.uid, pod.metadata.generation = f"uid-{row['name']}", 1
        pod.metadata.creationTimestamp.seconds = CREATED + row["created"]
        pod.status.qosClass, pod.status.phase = row["qos"], "Pending"
        if "priority" in row:
            pod.spec.priority = row["priority"]
        if row.get("static"):
            pod.metadata.annotations["kubernetes.io/config.source"] = "file"
        for name, text in row.get("overhead", {}).items():
            pod.spec.overhead[name].string = text
        for key, value in row.get("nodeSelector", {}).items():
            pod.spec.nodeSelector[key] = value
        for toleration in row.get("tolerations", []):
            pod.spec.tolerations.add(**toleration)
        if "podResources" in row:
            fill_resources(pod.spec.resources, row["podResources"])
        for entry in row["containers"]:
            kind = entry.get("type", "")
            container = (pod.spec.initContainers if kind else pod.spec.containers).add()
            container.name = entry["name"]
            if kind == "sidecar":
                container.restartPolicy = "Always"
            fill_resources(container.resources, entry)
            for resource, policy in entry.get("resizePolicy", {}).items():
                container.resizePolicy.add(resourceName=resource, restartPolicy=policy)
            if entry.get("swap"):
                self.swapping.add(entry["name"])
        return pod


def shown(resources: PodResources) -> dict[str, Any]:
    return {name: requirements.to_json() for name, requirements in resources.containers}


def fill_resources(message: core.ResourceRequirements, row: Case) -> None:
    """Given maps replace the old ones."""
    for field_name in ("requests", "limits"):
        if field_name in row:
            message.ClearField(field_name)
            target = message.requests if field_name == "requests" else message.limits
            for name, text in row[field_name].items():
                target[name].string = text


def node_message(row: Case, old: core.Node | None) -> core.Node:
    node = core.Node()
    node.metadata.name = "node"
    for name, text in row["allocatable"].items():
        node.status.allocatable[name].string = text
    labels = row.get("labels", dict(old.metadata.labels) if old is not None else {})
    node.metadata.labels.update(labels)
    for taint in row.get("taints", []):
        node.spec.taints.add(**taint)
    return node


def write_containers(pod: core.Pod, allocated: PodResources, actuated: PodResources) -> None:
    """Container statuses with resources, as of containers that run."""
    for specs, rows in (
        (pod.spec.initContainers, pod.status.initContainerStatuses),
        (pod.spec.containers, pod.status.containerStatuses),
    ):
        del rows[:]
        for container in specs:
            rows.add(name=container.name)
    containers = tuple(
        Container(name=name, state="running", resources=requirements)
        for name, requirements in actuated.containers
    )
    sandbox = PodSandbox(uid=pod.metadata.uid, started=0.0, containers=containers, pod_resources=actuated.pod)
    write_resources(pod, pod.status, allocated, sandbox)
