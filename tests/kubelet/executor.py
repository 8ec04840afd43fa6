"""Performs the instructions of the kubelet's core in memory: API server, disk and runtime of one node.

What survives the death of the kubelet (`api`, `disk`, the runtime as it is on disk) is kept apart from its
state (`node`), so that `restart` is a new process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nominee.kubelet import events, instructions
from nominee.kubelet.checkpoint import Checkpoint, decode, encode
from nominee.kubelet.features import Features
from nominee.kubelet.instructions import NodeInstruction, PodInstruction
from nominee.kubelet.node.state import NodeSettings, NodeState
from nominee.kubelet.runtime.emulated_runtime import EmulatedRuntime
from nominee.kubelet.sync_loop import handle
from nominee.machinery.api.pb import core
from nominee.machinery.patch.strategic_merge import strategic_merge_patch
from nominee.machinery.wire import presence
from nominee.machinery.wire.codec import from_json, to_json

NOW = 1_700_000_000.0
SYNCS_MAX = 1_000


class KilledError(Exception):
    """The kubelet was killed before it performed an instruction."""


@dataclass
class Executor:
    """One node with its kubelet, which is killed before the pod instruction number `kill_at` (from 0)."""

    node_object: core.Node
    settings: NodeSettings = field(default_factory=NodeSettings)
    features: Features = field(default_factory=Features)
    api: dict[str, core.Pod] = field(default_factory=dict)
    """By name."""
    disk: bytes | None = None
    now: float = NOW
    ahead: float = 0.0
    """By how much the kubelet's wall clock was set forward."""
    kill_at: int | None = None
    performed: list[PodInstruction] = field(default_factory=list)
    """By all processes, in order."""
    noted: list[NodeInstruction] = field(default_factory=list)
    """By all processes, in order."""

    def __post_init__(self) -> None:
        self.revision = 100
        self.queue: list[str] = []
        self.later: list[tuple[float, str]] = []
        self.start_process()

    # The process

    def start_process(self) -> None:
        """Start with what is on disk, and nothing else."""
        self.node = NodeState(self.node_object, self.settings, self.features)
        saved = Checkpoint(node="node") if self.disk is None else decode(self.disk)
        self.runtime = EmulatedRuntime(1, "172.16.0.1", dict(saved.sandboxes))
        self.queue.clear()
        self.later.clear()
        self.handle(events.AllocationsRestored(allocations=saved.allocations))

    def list_pods(self) -> None:
        """Give the kubelet the first list of pods."""
        self.handle(events.PodsListed(pods=tuple(self.api.values()), at=self.moment()))

    def moment(self) -> events.Moment:
        return events.Moment(self.now + self.ahead, self.now - NOW)

    # The API server

    def store(self, pod: core.Pod) -> core.Pod:
        """Store a pod as a write of a client does; the kubelet sees it with `observe`."""
        self.revision += 1
        stored = core.Pod()
        stored.CopyFrom(pod)
        stored.metadata.resourceVersion = str(self.revision)
        self.api[pod.metadata.name] = stored
        return stored

    def observe(self, *names: str) -> None:
        """Let the watch show these pods."""
        changes = tuple((uid(name), self.api.get(name)) for name in names)
        self.handle(events.PodsObserved(changes=changes, at=self.moment()))

    # Instructions

    def handle(self, event: events.Event) -> PodInstruction | None:
        """Feed the core; return the pod instruction that wants an answer."""
        for instruction in handle(self.node, event):
            if isinstance(instruction, PodInstruction):
                return instruction
            self.note(instruction)
        return None

    def note(self, instruction: NodeInstruction) -> None:
        """Perform a node instruction."""
        self.noted.append(instruction)
        match instruction:
            case instructions.QueueSync(pod):
                if pod not in self.queue:
                    self.queue.append(pod)
            case instructions.SyncLater(pod, seconds):
                self.later.append((self.now + seconds, pod))
            case instructions.RemoveSandbox(pod):
                self.runtime.remove(pod)

    def sync(self, pod: str) -> None:
        """Sync a pod (uid) until its sync is over."""
        instruction = self.begin(pod)
        while instruction is not None:
            instruction = self.handle(self.perform(instruction))

    def begin(self, pod: str) -> PodInstruction | None:
        """Begin a sync of a pod (uid)."""
        return self.handle(events.SyncDue(uid=pod, sandbox=self.runtime.sandboxes.get(pod), at=self.moment()))

    def work(self) -> None:
        """Sync queued pods, and show the kubelet what it wrote, until nothing is queued."""
        for _ in range(SYNCS_MAX):
            if not self.queue:
                return
            pod = self.queue.pop(0)
            before = self.revision
            self.sync(pod)
            if self.revision != before or name(pod) not in self.api:
                self.observe(name(pod))
        raise AssertionError(f"pods are synced again and again: {self.queue}")

    def retry(self) -> None:
        """Let the periodic retry of pending resizes come."""
        self.handle(events.RetryDue(at=self.moment()))
        self.work()

    def pass_time(self, seconds: float) -> None:
        """Let time pass; pods whose time has come are queued."""
        self.now += seconds
        due = [pod for when, pod in self.later if when <= self.now]
        self.later = [(when, pod) for when, pod in self.later if when > self.now]
        self.queue += [pod for pod in dict.fromkeys(due) if pod not in self.queue]

    def perform(self, instruction: PodInstruction) -> events.Result:
        """Perform a pod instruction and return its result."""
        if self.kill_at == len(self.performed):
            self.kill_at = None
            raise KilledError
        self.performed.append(instruction)
        pod = instruction.uid
        if not isinstance(instruction, instructions.SaveCheckpoint):
            assert self.is_saved(pod), f"allocation of {pod} is not on disk before {instruction}"
        match instruction:
            case instructions.SaveCheckpoint(_, version):
                self.save()
                return events.CheckpointSaved(uid=pod, version=version, at=self.moment())
            case instructions.PatchStatus():
                return events.StatusWritten(uid=pod, pod=self.patch(instruction), at=self.moment())
            case instructions.DeletePod(_, key):
                self.api.pop(key.name, None)
                return events.PodDeleted(uid=pod, at=self.moment())
            case _:
                return self.call(instruction)

    def call(self, call: instructions.RuntimeCall) -> events.Result:
        """Make a call of the runtime; what it changes is on disk at once."""
        sandbox = self.runtime.perform(call, self.now)
        self.save()
        return events.CallDone(uid=call.uid, sandbox=sandbox, at=self.moment())

    def patch(self, patch: instructions.PatchStatus) -> core.Pod | None:
        """Apply a patch of a status, which must give the status that the kubelet means."""
        old = self.api.get(patch.pod.name)
        if old is None or old.metadata.uid != patch.uid:
            return None
        change = patch.patch["status"]
        assert isinstance(change, dict)
        document = strategic_merge_patch("k8s.io.api.core.v1.PodStatus", to_json(old.status), change)
        pod = core.Pod()
        pod.CopyFrom(old)
        pod.status.CopyFrom(from_json(core.PodStatus, document))
        presence.fill(pod.status)
        return self.store(pod)

    def is_saved(self, pod: str) -> bool:
        """Return whether the allocation of a pod (uid) is on disk."""
        held = self.node.allocations.get(pod)
        if pod not in self.node.pods or held is None:
            return True
        return self.disk is not None and decode(self.disk).allocations.get(pod) == held

    def save(self) -> None:
        """Write allocations and runtime to disk."""
        self.disk = encode(
            Checkpoint(node="node", allocations=self.node.allocations, sandboxes=self.runtime.sandboxes)
        )


def node_object(**allocatable: str) -> core.Node:
    """Return a node with this much to allocate."""
    node = core.Node()
    node.metadata.name = "node"
    for resource, text in allocatable.items():
        node.status.allocatable[resource].string = text
    return node


def new_pod(pod: str, *containers: core.Container, **spec: Any) -> core.Pod:
    """Return a pod as the API server has it before the kubelet saw it."""
    made = core.Pod()
    made.metadata.name, made.metadata.namespace, made.metadata.uid = pod, "default", uid(pod)
    made.metadata.generation, made.metadata.creationTimestamp.seconds = 1, int(NOW)
    made.spec.containers.extend(containers or [container("main", cpu="1")])
    made.spec.restartPolicy, made.spec.terminationGracePeriodSeconds = "Always", 30
    for key, value in spec.items():
        setattr(made.spec, key, value)
    made.status.phase, made.status.qosClass = "Pending", "Burstable"
    presence.fill(made)
    return made


def container(
    named: str, *, limits: Mapping[str, str] = {}, restarts_for: tuple[str, ...] = (), **requests: str
) -> core.Container:
    """Return a container; it restarts for a resize of the resources that `restarts_for` names."""
    made = core.Container(name=named, image="pause")
    for resource, text in requests.items():
        made.resources.requests[resource].string = text
    for resource, text in limits.items():
        made.resources.limits[resource].string = text
    for resource in restarts_for:
        made.resizePolicy.add(resourceName=resource, restartPolicy="RestartContainer")
    return made


def resized(pod: core.Pod, named: str, **requests: str) -> core.Pod:
    """Return a copy of the pod whose container asks for other resources; its limits, where set, follow."""
    made = core.Pod()
    made.CopyFrom(pod)
    made.metadata.generation += 1
    for one in (*made.spec.initContainers, *made.spec.containers):
        if one.name == named:
            for resource, text in requests.items():
                one.resources.requests[resource].string = text
                if resource in one.resources.limits:
                    one.resources.limits[resource].string = text
    return made


def deleted(pod: core.Pod, seconds: int = 30) -> core.Pod:
    """Return a copy of the pod whose deletion has begun, with a grace period."""
    made = core.Pod()
    made.CopyFrom(pod)
    made.metadata.deletionTimestamp.seconds = int(NOW) + seconds
    made.metadata.deletionGracePeriodSeconds = seconds
    return made


def uid(pod: str) -> str:
    """Return the uid of a pod's name."""
    return f"uid-{pod}"


def name(pod: str) -> str:
    """Return the name of a pod's uid."""
    return pod.removeprefix("uid-")


def calls(performed: Iterable[PodInstruction]) -> list[str]:
    """Return the names of instructions."""
    return [type(instruction).__name__ for instruction in performed]
