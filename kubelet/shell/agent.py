"""One node: its core, its runtime and its checkpoint together.

Synchronous: it feeds events to the core, performs node instructions, and hands pod instructions to its
caller, the pod worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import anyio

from nominee.kubelet import events, instructions
from nominee.kubelet.checkpoint import Checkpoint, CorruptCheckpointError
from nominee.kubelet.instructions import NodeInstruction, PodInstruction
from nominee.kubelet.node.node_object import Identity
from nominee.kubelet.node.state import NodeState
from nominee.kubelet.pods.record import TERMINAL_PHASES
from nominee.kubelet.runtime.adoption import adopt, allocations
from nominee.kubelet.runtime.emulated_runtime import EmulatedRuntime
from nominee.kubelet.shell import metrics
from nominee.kubelet.shell.checkpoints.checkpoint_file import CheckpointFile
from nominee.kubelet.shell.checkpoints.checkpointer import Checkpointer
from nominee.kubelet.shell.timers import Timers
from nominee.kubelet.sync_loop import handle
from nominee.machinery.api.objects import key_of, resource_version_of
from nominee.machinery.api.pb import core
from nominee.machinery.events.recorder import BufferedRecorder
from nominee.machinery.process.component import Fatal
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import Clock


@dataclass(slots=True)
class Environment:
    """The clock, recorders and queues that all agents of a process share."""

    clock: Clock
    timers: Timers
    recorder: BufferedRecorder
    container_recorder: BufferedRecorder
    """A second one for what happens most: however many pods start, a resize's event does not wait behind."""
    enqueue: Callable[[str, str], None]
    """Queues a pod (node, uid) for the pod worker."""
    retry: Callable[[str], None]
    """Queues the periodic retry of a node's pending resizes."""
    disk: anyio.CapacityLimiter


@dataclass(slots=True)
class Agent:
    """A node of this process."""

    identity: Identity
    node: NodeState
    file: CheckpointFile
    env: Environment
    stopped: bool = False
    lost_checkpoint: bool = False
    adopting: bool = False
    """The node's pods are still as another cluster left them."""
    runtime: EmulatedRuntime = field(init=False)
    checkpointer: Checkpointer = field(init=False)
    _retry_number: int = 0

    def __post_init__(self) -> None:
        self.runtime = EmulatedRuntime(self.identity.number, self.identity.host_ip)
        self.checkpointer = Checkpointer(self.file, self.snapshot, lambda: self.node.version, self.env.disk)

    @property
    def name(self) -> str:
        return self.identity.name

    # Life

    def restore(self) -> None:
        """Read the checkpoint.

        A kubelet does not run with a corrupt one, as upstream's: without the allocations, pending resizes
        would be granted, and pods that run could be rejected.

        Raises:
            Fatal: the checkpoint is corrupt; the text names the file, and what to do.
        """
        try:
            checkpoint = self.file.load()
        except CorruptCheckpointError as error:
            raise Fatal(
                f"node {self.name}: {error}; restore the file, or remove it to start without allocations:"
                " pods are then taken with what their specs ask for, and their containers from their status"
            ) from None
        if checkpoint is None:
            self.lost_checkpoint = True
            return
        self.runtime.sandboxes = dict(checkpoint.sandboxes)
        self.handle(events.AllocationsRestored(allocations=checkpoint.allocations))

    def begin(self, pods: Iterable[core.Pod]) -> None:
        """Take all pods of the node as the first list shows them."""
        listed = tuple(pods)
        if self.adopting:
            found = {pod.metadata.uid: allocations(pod, self.node.desired_of(pod)) for pod in listed}
            self.handle(events.AllocationsRestored(allocations=found))
        if self.lost_checkpoint or self.adopting:
            for pod in listed:
                sandbox = adopt(pod) if pod.status.phase not in TERMINAL_PHASES else None
                if sandbox is not None:
                    self.runtime.sandboxes[sandbox.uid] = sandbox
                    self.checkpointer.mark_changed()
        if self.runtime.remove_orphans(pod.metadata.uid for pod in listed):
            self.checkpointer.mark_changed()
        self.handle(events.PodsListed(pods=listed, at=self.moment()))

    def snapshot(self) -> Checkpoint:
        """Return the checkpoint of the present state."""
        return Checkpoint(
            node=self.name, allocations=dict(self.node.allocations), sandboxes=dict(self.runtime.sandboxes)
        )

    def moment(self) -> events.Moment:
        return events.Moment.of(self.env.clock)

    # Events

    def observe(self, changes: Iterable[tuple[str, core.Pod | None]]) -> None:
        """Take pods as the API has them now, None for one that is gone."""
        self.handle(events.PodsObserved(changes=tuple(changes), at=self.moment()))

    def node_changed(self, node: core.Node) -> None:
        """Take the node object as the API has it; one that is older than the cached one is dropped.

        Source: kubelet 1.36, getCachedNode.
        """
        if resource_version_of(node) >= resource_version_of(self.node.node):
            self.handle(events.NodeChanged(node=node))

    def retry(self) -> None:
        self.handle(events.RetryDue(at=self.moment()))

    def sync(self, uid: str) -> PodInstruction | None:
        """Begin a sync of a pod; return the first instruction that wants an answer."""
        return self.handle(events.SyncDue(uid=uid, sandbox=self.runtime.sandboxes.get(uid), at=self.moment()))

    def handle(self, event: events.Event) -> PodInstruction | None:
        """Feed the core and perform its node instructions; return the one that wants an answer, if any."""
        for instruction in handle(self.node, event):
            if isinstance(instruction, NodeInstruction):
                self._perform(instruction)
            else:
                return instruction  # always the last one
        return None

    # Node instructions

    def _perform(self, instruction: NodeInstruction) -> None:
        match instruction:
            case instructions.QueueSync(uid):
                self.env.enqueue(self.name, uid)
            case instructions.SyncLater(uid, seconds):
                self.env.timers.after(seconds, lambda: self.env.enqueue(self.name, uid))
            case instructions.RemoveSandbox(uid):
                if self.runtime.remove(uid):
                    self.checkpointer.mark_changed()
            case instructions.RecordEvent(pod, type_, reason, message):
                self.env.recorder.event(pod, type_, reason, action=reason, note=message, instance=self.name)
                if reason.startswith("Resize"):
                    logs.get().info(reason, pod=key_of(pod), node=self.name, message=message)
            case instructions.RecordContainerEvents(container_events):
                for one in container_events:
                    self.env.container_recorder.event(
                        one.regarding, one.type, one.reason, action="", note=one.note, instance=self.name
                    )
            case instructions.ScheduleRetry(seconds):
                self._schedule_retry(seconds)
            case instructions.Evaluated():
                self._evaluated(instruction)
            case instructions.ResizeRequested():
                metrics.count_request(instruction)
            case instructions.Actuated():
                metrics.observe(instruction)
            case instructions.Retried():
                pass

    def _schedule_retry(self, seconds: float) -> None:
        """Replace the node's one timer: a new one makes the old one mean nothing."""
        self._retry_number += 1
        number = self._retry_number

        def due() -> None:
            if number == self._retry_number and not self.stopped:
                self.env.retry(self.name)

        if self.node.queue:
            self.env.timers.after(seconds, due)

    def _evaluated(self, evaluated: instructions.Evaluated) -> None:
        metrics.count(evaluated)
        record = self.node.pods.get(evaluated.uid)
        if record is not None and (evaluated.operation == "resize" or not evaluated.admitted):
            logs.get().info(
                "Evaluated",
                pod=key_of(record.pod),
                node=self.name,
                operation=evaluated.operation,
                admitted=evaluated.admitted,
                reason=evaluated.reason,
                message=evaluated.message,
            )
