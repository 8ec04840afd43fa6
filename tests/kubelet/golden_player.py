"""Plays a sequence of kubelet.jsonl through the kubelet's core.

The steps become the core's events, and its instructions are performed in memory. What is left to the player
is what the recorder chose and Kubernetes does not say: admitted pods start at once; one `sync` is one sync of
the pod worker, and its status comes back at once; an actuation is done at `actuate` and never before; a
preempted or rejected pod is Failed in the API at once; the checkpoint is written with the allocation. Its
runtime knew containers only: pod-level resources are in force as soon as a sync comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from nominee.kubelet import events, instructions
from nominee.kubelet.features import status_features
from nominee.kubelet.instructions import NodeInstruction, PodInstruction, SyncCause
from nominee.kubelet.node.state import NodeSettings
from nominee.kubelet.options import Delays
from nominee.kubelet.pods.merge_order import merge_order
from nominee.kubelet.pods.record import PodRecord
from nominee.kubelet.resources.pod_resources import PodResources, desired_resources
from nominee.kubelet.runtime import sandbox as runtime
from nominee.kubelet.status.resize_conditions import write_resize_conditions
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.wire import presence
from tests.kubelet.executor import Executor, name, uid
from tests.support.recordings import Case

CREATED = 1_700_000_000
VERSION = Version(1, 36)
NEVER_SECONDS = 1e9


@dataclass
class Seen:
    """What one step caused."""

    evaluated: list[Case] = field(default_factory=list)
    syncs: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    preempted: list[str] = field(default_factory=list)
    trigger: str | None = None


class Player(Executor):
    """One node, driven by the steps of a sequence."""

    def __init__(self, case: Case) -> None:
        row = case["node"]
        self.swapping: set[str] = set()
        self.states: dict[str, tuple[str, str, str]] = {}
        self.seen = Seen()
        self.error = ""
        self.waits, self.waited = 0, 0.0
        settings = NodeSettings(
            version=VERSION,
            status=status_features(VERSION, Gates("kubelet", VERSION)),
            delays=Delays(actuation=NEVER_SECONDS),
            cpu_manager_policy=row.get("cpuManagerPolicy", "none"),
            memory_manager_policy=row.get("memoryManagerPolicy", "None"),
            uses_swap=lambda pod, container: container in self.swapping,
        )
        super().__init__(node_message(row, None), settings)
        self.node.sources_ready = True

    def step(self, step: Case) -> Case:
        """Play one step and return what the golden file says of it."""
        self.seen = Seen()
        self.now += 1.0
        getattr(self, f"op_{step['op']}")(step)
        result: Case = {"expect": self.expectations(), "queue": [name(one) for one in self.node.queue]}
        for key in ("evaluated", "syncs", "events", "preempted", "trigger"):
            if getattr(self.seen, key):
                result[key] = getattr(self.seen, key)
        return result

    # The steps

    def op_add(self, step: Case) -> None:
        pods = [self.store(self.pod_message(row)) for row in step["pods"]]
        changes = merge_order(self.node.pods, [(pod.metadata.uid, pod) for pod in pods])
        self.handle(events.PodsObserved(changes=tuple(changes), at=self.moment()))
        self.start(pods)

    def op_resize(self, step: Case) -> None:
        self.change(step)
        self.observe(step["pod"])

    def op_api_resize_while_down(self, step: Case) -> None:
        self.change(step)

    def op_sync(self, step: Case) -> None:
        for pod in step["names"]:
            if self.record(pod) is not None:
                self.sync(uid(pod))
                self.observe(pod)

    def op_actuate(self, step: Case) -> None:
        for pod in step["names"]:
            record = self.record(pod)
            if record is not None:
                self.actuate_outside(record)
                self.sync_at_once(pod)
                self.observe(pod)

    def op_actuate_error(self, step: Case) -> None:
        """The runtime refuses the first call; the status is not written before the next sync."""
        self.error = step["error"]
        before = len(self.performed)
        self.sync_at_once(step["pod"])
        performed = [one for one in self.performed[before:] if not isinstance(one, instructions.PatchStatus)]
        assert isinstance(performed[-1], instructions.Actuate)
        self.error = ""

    def op_terminate(self, step: Case) -> None:
        """All containers exit by themselves."""
        pod, code = step["pod"], 0 if step["phase"] == "Succeeded" else 1
        sandbox = self.runtime.sandboxes[uid(pod)]
        self.runtime.sandboxes[uid(pod)] = runtime.stop(sandbox, now=self.now, exit_code=code)
        self.states[pod] = ("terminal", "", "")
        self.sync(uid(pod))
        self.observe(pod)

    def op_remove(self, step: Case) -> None:
        for pod in step["names"]:
            self.api.pop(pod, None)
            self.states.pop(pod, None)
        self.observe(*step["names"])

    def op_tick(self, step: Case) -> None:
        self.handle(events.RetryDue(at=self.moment()))

    def op_node(self, step: Case) -> None:
        self.handle(events.NodeChanged(node=node_message(step["node"], self.node.node)))

    def op_restart(self, step: Case, *, keep: bool = True) -> None:
        self.save()
        self.node_object = self.node.node
        self.start_process()
        if not keep:
            self.handle(events.AllocationsRestored(allocations={}))
        self.list_pods()
        self.start(list(self.api.values()))

    def op_restart_lost_checkpoint(self, step: Case) -> None:
        self.op_restart(step, keep=False)

    def op_cleanup(self, step: Case) -> None:
        gone = [one for one in self.node.allocations if one not in self.node.pods]
        assert not gone

    # What the recorder chose

    def start(self, pods: list[core.Pod]) -> None:
        """Start admitted pods that the runtime does not have."""
        for pod in pods:
            record = self.node.pods[pod.metadata.uid]
            if record.active and record.uid not in self.runtime.sandboxes:
                self.states[pod.metadata.name] = ("active", "", "")
                self.sync(record.uid)
                self.observe(pod.metadata.name)

    def sync_at_once(self, pod: str) -> None:
        """Sync a pod when the time of its actuation has come."""
        self.waits += 1
        self.waited = 2 * NEVER_SECONDS * self.waits
        self.node.settings = replace(self.settings, delays=Delays())
        self.sync(uid(pod))
        self.node.settings, self.waited = self.settings, 0.0

    def moment(self) -> events.Moment:
        return events.Moment(self.now, self.now + self.waited)

    def actuate_outside(self, record: PodRecord) -> None:
        """Let the runtime have what no sync of the kubelet actuates, and the recorder's actuation did.

        Those are the resources of init containers that have exited, and all resources of a pod whose resize
        no sync has found to be in progress: the recorder actuates before its sync, the kubelet looks first.
        """
        allocated = self.node.allocated(record)
        sandbox = self.runtime.sandboxes[record.uid]
        exited = {one.name for one in sandbox.containers if one.state == "exited"}
        resources = {
            container: requirements
            for container, requirements in allocated.containers
            if record.in_progress is None or container in exited
        }
        sandbox = runtime.with_resources(sandbox, resources)
        if record.in_progress is None:
            sandbox = runtime.with_pod_resources(sandbox, allocated.pod)
        self.runtime.sandboxes[record.uid] = sandbox

    def begin(self, pod: str) -> PodInstruction | None:
        record, sandbox = self.node.pods.get(pod), self.runtime.sandboxes.get(pod)
        if record is not None and sandbox is not None:
            own = self.node.allocated(record).pod
            self.runtime.sandboxes[pod] = runtime.inherit(runtime.with_pod_resources(sandbox, own))
        return super().begin(pod)

    def perform(self, instruction: PodInstruction) -> events.Result:
        pod, at = instruction.uid, self.moment()
        sandbox = self.runtime.sandboxes.get(pod)
        if self.error and isinstance(instruction, instructions.Actuate):
            self.performed.append(instruction)
            return events.CallRefused(uid=pod, error=self.error, sandbox=sandbox, at=at)
        if self.error and isinstance(instruction, instructions.PatchStatus):
            self.performed.append(instruction)
            return events.InstructionFailed(uid=pod, sandbox=sandbox, at=at)
        return super().perform(instruction)

    def change(self, step: Case) -> None:
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
        self.store(pod)

    def note(self, instruction: NodeInstruction) -> None:
        super().note(instruction)
        seen = self.seen
        match instruction:
            case instructions.Evaluated():
                row: Case = {
                    "pod": name(instruction.uid),
                    "operation": instruction.operation,
                    "admit": instruction.admitted,
                }
                if not instruction.admitted:
                    row |= {"reason": instruction.reason, "message": instruction.message}
                seen.evaluated.append(row)
            case instructions.RecordEvent(pod, type_, reason, message):
                seen.events.append(f"{pod.metadata.name} {type_} {reason} {message}")
            case instructions.Retried(trigger):
                seen.trigger = trigger
            case instructions.QueueSync(pod_uid, SyncCause.RESIZE):
                seen.syncs.append(name(pod_uid))
            case instructions.QueueSync(pod_uid, SyncCause.PREEMPTED):
                seen.preempted.append(name(pod_uid))
                self.fail(name(pod_uid), "preempted")
            case instructions.QueueSync(pod_uid, SyncCause.REJECTED):
                self.fail(name(pod_uid), "rejected")
            case _:
                pass

    def fail(self, pod_name: str, state: str) -> None:
        record = self.record(pod_name)
        assert record is not None
        assert record.outcome is not None
        self.states[pod_name] = (state, record.outcome.reason, record.outcome.message)
        pod = self.copy(pod_name)
        pod.status.phase = "Failed"
        pod.status.reason, pod.status.message = record.outcome.reason, record.outcome.message
        write_resize_conditions(pod.status, None, None)  # a terminating pod's status has none
        self.store(pod)

    # What is compared

    def expectations(self) -> Case:
        return {pod: self.expectation(pod) for pod in sorted(self.api)}

    def expectation(self, pod: str) -> Case:
        record = self.record(pod)
        assert record is not None
        state, reason, message = self.states.get(pod, ("active", "", ""))
        row: Case = {"state": state, "generation": self.api[pod].metadata.generation, "resize": "none"}
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
        sandbox = self.runtime.sandboxes.get(record.uid)
        if sandbox is not None and allocation is not None:
            actuated = sandbox.in_force()
            differing = {
                container: actuated.of(container).to_json()
                for container, requirements in allocation.containers
                if not requirements.same(actuated.of(container))
            }
            if differing:
                row["actuated"] = differing
        return row

    # Small things

    def record(self, pod: str) -> PodRecord | None:
        return self.node.pods.get(uid(pod))

    def copy(self, pod: str) -> core.Pod:
        found = core.Pod()
        found.CopyFrom(self.api[pod])
        return found

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
        for resource, text in row.get("overhead", {}).items():
            pod.spec.overhead[resource].string = text
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
        presence.fill(pod)
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
    for resource, text in row["allocatable"].items():
        node.status.allocatable[resource].string = text
    labels = row.get("labels", dict(old.metadata.labels) if old is not None else {})
    node.metadata.labels.update(labels)
    for taint in row.get("taints", []):
        node.spec.taints.add(**taint)
    return node
