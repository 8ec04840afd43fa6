"""One node: keeps its allocation core, its containers and its checkpoint together.

Synchronous: it hears what changed, lets the core decide, and queues pods for the pod worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import anyio

from kubelet import events, instructions
from kubelet.allocation.feasibility import restarts_for
from kubelet.allocation.manager import handle
from kubelet.checkpoint import Checkpoint, CorruptCheckpointError
from kubelet.features import StatusFeatures
from kubelet.node import addresses
from kubelet.node.node_object import Identity
from kubelet.node.state import TERMINAL_PHASES, NodeState, PodRecord
from kubelet.pods import deadline
from kubelet.pods.container_events import Told
from kubelet.pods.last_sync import LastSync
from kubelet.resize.actuation import ContainerResize, changed_limits
from kubelet.resources.pod_resources import PodResources
from kubelet.runtime.adoption import adopt
from kubelet.runtime.sandbox import PodSandbox
from kubelet.shell import metrics
from kubelet.shell.checkpoint_file import CheckpointFile
from kubelet.shell.checkpointer import Checkpointer
from kubelet.shell.timers import Timers
from kubelet.status.pod_status import Outcome
from machinery.api.objects import key_of, resource_version_of
from machinery.api.pb import core
from machinery.events.recorder import EventRecorder
from machinery.features.gates import Version
from machinery.resources.pod_resources import CPU, MEMORY
from machinery.runtime import logs
from machinery.runtime.clock import Clock


@dataclass(slots=True)
class Due:
    """When the runtime is done with what it does for a pod (seconds of the monotonic clock)."""

    start: float | None = None
    ready: float | None = None
    stop: float | None = None
    actuate: float | None = None
    actuates: PodResources | None = None
    """The allocation that `actuate` is about."""
    end: float | None = None
    restart: float | None = None
    deadline: float | None = None
    deadline_seconds: int = 0
    """The `spec.activeDeadlineSeconds` that `deadline` is about."""


@dataclass(slots=True)
class Surroundings:
    """What all agents of a process share."""

    clock: Clock
    timers: Timers
    recorder: EventRecorder
    container_recorder: EventRecorder
    """A second one for what happens most: however many pods start, a resize's event does not wait behind."""
    enqueue: Callable[[str, str], None]
    """Queues a pod (node, uid) for the pod worker."""
    status: StatusFeatures
    version: Version
    disk: anyio.CapacityLimiter


@dataclass(slots=True)
class Agent:
    """The state of one node and the door to its core."""

    identity: Identity
    state: NodeState
    file: CheckpointFile
    around: Surroundings
    sandboxes: dict[str, PodSandbox] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    admitted: set[str] = field(default_factory=set)
    due: dict[str, Due] = field(default_factory=dict)
    written: dict[str, core.Pod] = field(default_factory=dict)
    """The answers to our last status writes, until the watch has caught up."""
    synced: dict[str, LastSync] = field(default_factory=dict)
    """What the pod worker's last pass acted on."""
    stopped: bool = False
    lost_checkpoint: bool = False
    checkpointer: Checkpointer = field(init=False)
    _retry_number: int = 0
    _trigger: str = ""

    def __post_init__(self) -> None:
        self.checkpointer = Checkpointer(self.file, self.snapshot, self.around.disk)

    @property
    def name(self) -> str:
        return self.identity.name

    # Life

    def restore(self) -> None:
        """Reads the checkpoint; a corrupt one is told of, set aside, and done without."""
        try:
            checkpoint = self.file.load()
        except CorruptCheckpointError as error:
            aside = self.file.set_aside()
            self.lost_checkpoint = True
            logs.get().error(
                "Checkpoint is corrupt: pods are taken with what they desire, containers from their status",
                node=self.name,
                error=str(error),
                kept=str(aside),
            )
            return
        if checkpoint is None:
            self.lost_checkpoint = True
            return
        self.sandboxes = dict(checkpoint.sandboxes)
        self.send(events.AllocationsRestored(allocations=dict(checkpoint.allocations)))

    def begin(self, pods: Iterable[core.Pod]) -> None:
        """Takes all pods of the node as the first list shows them."""
        known = {pod.metadata.uid: pod for pod in pods}
        if self.lost_checkpoint:
            for uid, pod in known.items():
                sandbox = adopt(pod) if pod.status.phase not in TERMINAL_PHASES else None
                if sandbox is not None:
                    self.sandboxes[uid] = sandbox
                    self.checkpointer.changed()
        for uid in [uid for uid in self.sandboxes if uid not in known]:
            del self.sandboxes[uid]
            self.checkpointer.changed()
        orphans = [uid for uid in self.state.allocations if uid not in known]
        for uid in orphans:
            del self.state.allocations[uid]
            self.checkpointer.changed()
        self.send(events.PodsAdded(pods=tuple(known.values()), now=self.now()))
        self.send(events.SourcesReady())
        for uid in known:
            self.around.enqueue(self.name, uid)

    def snapshot(self) -> Checkpoint:
        return Checkpoint(
            node=self.name, allocations=dict(self.state.allocations), sandboxes=dict(self.sandboxes)
        )

    # What changed

    def observe(self, changes: Iterable[tuple[str, core.Pod | None]]) -> None:
        """Pods as the API has them now, None for one that is gone."""
        added, removed = [], []
        for uid, pod in changes:
            if pod is None:
                if uid in self.state.pods:
                    removed.append(uid)
            elif uid in self.state.pods:
                self._changed(self.state.pods[uid], pod)
            else:
                added.append(pod)
        if added:
            self.send(events.PodsAdded(pods=tuple(added), now=self.now()))
            for pod in added:
                self.around.enqueue(self.name, pod.metadata.uid)
        if removed:
            self.send(events.PodsRemoved(uids=tuple(removed), now=self.now()))
            for uid in removed:
                self.forget(uid)

    def _changed(self, record: PodRecord, pod: core.Pod) -> None:
        old = record.pod
        answer = self.written.get(record.uid)
        if answer is not None and resource_version_of(pod) >= resource_version_of(answer):
            del self.written[record.uid]
        spec_changed = old.spec != pod.spec
        if old.status != pod.status:
            seen = pod
            if spec_changed:
                # Both at once (the watch was slow): one after the other, as a kubelet in time would see it.
                seen = core.Pod()
                seen.CopyFrom(pod)
                seen.spec.CopyFrom(old.spec)
                seen.metadata.generation = old.metadata.generation
            self.send(events.PodReconciled(pod=seen, now=self.now()))
        if spec_changed or old.status == pod.status:
            self.send(events.PodUpdated(pod=pod, now=self.now()))
        last = self.synced.get(record.uid)
        if last is None or not last.covers(pod):
            self.around.enqueue(self.name, record.uid)

    def node_changed(self, node: core.Node) -> None:
        self.send(events.NodeChanged(node=node))

    def forget(self, uid: str) -> None:
        """The pod is gone from the API: whatever of it still runs is killed."""
        self.outcomes.pop(uid, None)
        self.admitted.discard(uid)
        self.due.pop(uid, None)
        self.written.pop(uid, None)
        self.synced.pop(uid, None)
        if self.sandboxes.pop(uid, None) is not None:
            self.checkpointer.changed()
        self.around.enqueue(self.name, uid)  # saves the checkpoint

    # The core

    def send(self, event: events.Event) -> None:
        """Tells the core, and does what it wants."""
        for action in handle(self.state, event):
            self._perform(action)

    def _perform(self, action: instructions.Instruction) -> None:
        match action:
            case instructions.SaveAllocations():
                self.checkpointer.changed()
            case instructions.AdmitPod(uid):
                self.admitted.add(uid)
                self.around.enqueue(self.name, uid)
            case instructions.RejectPod(uid, reason, message):
                self.outcomes[uid] = Outcome(reason=reason, message=message)
                self.around.enqueue(self.name, uid)
            case instructions.KillPod(uid, reason, message):
                self.outcomes[uid] = Outcome(reason=reason, message=message, preempted=True)
                self.around.enqueue(self.name, uid)
            case instructions.SyncPod(uid):
                self.around.enqueue(self.name, uid)
            case instructions.RecordEvent(pod, type_, reason, message):
                self.around.recorder.event(
                    pod, type_, reason, action=reason, note=message, instance=self.name
                )
            case instructions.ScheduleRetry(seconds):
                self._schedule_retry(seconds)
            case instructions.Evaluated():
                self._evaluated(action)
            case instructions.Retried(trigger):
                self._trigger = trigger

    def _schedule_retry(self, seconds: float) -> None:
        """One timer a node: a new one makes the old one mean nothing."""
        self._retry_number += 1
        number = self._retry_number

        def due() -> None:
            if number == self._retry_number and not self.stopped:
                self.send(events.RetryDue(now=self.now()))

        if self.state.queue:
            self.around.timers.after(seconds, due)

    def _evaluated(self, action: instructions.Evaluated) -> None:
        metrics.count(action, self._trigger)
        record = self.state.pods.get(action.uid)
        if record is not None and (action.operation == "resize" or not action.admitted):
            logs.get().info(
                "Evaluated",
                pod=key_of(record.pod),
                node=self.name,
                operation=action.operation,
                admitted=action.admitted,
                reason=action.reason,
                message=action.message,
            )

    # What the pod worker asks

    def begin_sync(self, record: PodRecord) -> None:
        """Note the pod that a pass of the worker is about to act on."""
        self.synced[record.uid] = LastSync(record.pod)

    def decide_status(self, uid: str, status: core.PodStatus) -> None:
        """Note the status that the pass decided on, before it is written: the watch may be faster."""
        last = self.synced.get(uid)
        if last is not None:
            self.synced[uid] = replace(last, status=status)

    def tell(self, told: Iterable[Told]) -> None:
        """Records what happens to containers."""
        for each in told:
            self.around.container_recorder.event(
                each.regarding, each.type, each.reason, action="", note=each.note, instance=self.name
            )

    def exceed_deadline(self, record: PodRecord) -> None:
        """End the pod: it was active for longer than its spec allows."""
        self.outcomes[record.uid] = Outcome(reason=deadline.REASON, message=deadline.MESSAGE)
        self.around.recorder.event(
            record.pod,
            "Normal",
            deadline.REASON,
            action=deadline.REASON,
            note=deadline.MESSAGE,
            instance=self.name,
        )

    def now(self) -> float:
        return self.around.clock.now()

    def set_sandbox(self, sandbox: PodSandbox) -> None:
        self.sandboxes[sandbox.uid] = sandbox
        self.checkpointer.changed()

    def ip_for(self, pod: core.Pod) -> str:
        """Return the node's address for a pod of the host network, else one that no pod of the node has.

        The last one when all are taken.
        """
        if pod.spec.hostNetwork:
            return self.identity.host_ip
        taken = {sandbox.ip for sandbox in self.sandboxes.values()}
        free = (addresses.pod_ip(self.identity.number, number) for number in addresses.POD_NUMBERS)
        last = addresses.pod_ip(self.identity.number, addresses.POD_NUMBERS[-1])
        return next((address for address in free if address not in taken), last)

    def resizes(self, record: PodRecord, sandbox: PodSandbox) -> list[ContainerResize]:
        """Each container with what it has and what it is to have."""
        allocated = self.state.allocated(record)
        changed = changed_limits(sandbox.pod_resources, allocated.pod)
        found = []
        for spec in (*record.pod.spec.initContainers, *record.pod.spec.containers):
            container = sandbox.get(spec.name)
            wanted = allocated.get(spec.name)
            if container is None or wanted is None:
                continue
            found.append(
                ContainerResize(
                    name=spec.name,
                    actuated=container.resources,
                    allocated=wanted,
                    restart_for=frozenset(name for name in (CPU, MEMORY) if restarts_for(spec, name)),
                    inherits=frozenset(
                        name
                        for name in changed
                        if not container.resources.limits.number(name) and not wanted.limits.number(name)
                    ),
                    running=container.state == "running",
                )
            )
        return found

    def pod_level_differs(self, record: PodRecord, sandbox: PodSandbox) -> bool:
        """Whether the pod as a whole is allocated other resources than are in force."""
        wanted = self.state.allocated(record).pod
        return wanted is not None and (
            sandbox.pod_resources is None or not wanted.same(sandbox.pod_resources)
        )
