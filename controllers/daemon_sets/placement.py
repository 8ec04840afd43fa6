"""The pods that a daemon set creates and deletes, node by node. Pure.

Source: kube-controller-manager 1.36, pkg/controller/daemon (podsShouldBeOnNode, manage).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nominee.controllers.deployments.sizes import amount
from nominee.controllers.owned_pods.readiness import is_available, is_ready
from nominee.controllers.planned_events import PlannedEvent
from nominee.controllers.revisions.history import REVISION_LABEL
from nominee.machinery.api.objects import has_ended, is_terminating
from nominee.machinery.api.pb import apps, core
from nominee.machinery.runtime.queues.backoff import ExponentialBackoff
from nominee.machinery.scheduling.daemons import Verdict, target_node

BURST_MAX: Final = 250
"""Pods created, and pods deleted, in one reconciliation."""
BACKOFF: Final = ExponentialBackoff(1.0, 15 * 60.0)
_FORGET_SECONDS: Final = 2 * BACKOFF.max_seconds

PodsByNode = Mapping[str, Sequence[core.Pod]]


def by_node(pods: Iterable[core.Pod]) -> dict[str, list[core.Pod]]:
    """Return the pods by their node, the oldest first; those that ended and terminate are gone already."""
    nodes: dict[str, list[core.Pod]] = defaultdict(list)
    for pod in pods:
        if is_terminating(pod) and has_ended(pod):
            continue
        node = target_node(pod)
        if node:
            nodes[node].append(pod)
    for on_node in nodes.values():
        if len(on_node) > 1:
            on_node.sort(key=_age_order)
    return nodes


def _age_order(pod: core.Pod) -> tuple[bool, int, str]:
    return (not pod.spec.nodeName, pod.metadata.creationTimestamp.seconds, pod.metadata.name)


def is_of(pod: core.Pod, digest: str) -> bool:
    """Report whether a pod was made from the template of this revision."""
    return pod.metadata.labels.get(REVISION_LABEL) == digest


class FailedPods:
    """The back-off of a daemon set's failed pods, by node. It begins again with each generation."""

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self._failures: dict[str, tuple[int, float]] = {}
        """Counts and times of the last failures; the latest is the last."""

    def __len__(self) -> int:
        return len(self._failures)

    def delay(self, node: str, now_seconds: float) -> float:
        """Return the back-off that a failed pod of the node is in; 0 counts it, for it is deleted now."""
        while self._failures and now_seconds - next(iter(self._failures.values()))[1] > _FORGET_SECONDS:
            del self._failures[next(iter(self._failures))]
        count, last = self._failures.get(node, (0, 0.0))
        delay = BACKOFF.delay(count)
        if now_seconds - last < delay:
            return delay
        self._failures.pop(node, None)
        self._failures[node] = (count + 1, now_seconds)
        return 0.0


@dataclass(slots=True)
class Work:
    """The nodes that need a pod, the pods to delete, the events to record, and when to look again."""

    create: list[str] = field(default_factory=list)
    delete: list[core.Pod] = field(default_factory=list)
    events: list[PlannedEvent] = field(default_factory=list)
    again_seconds: float | None = None

    def __bool__(self) -> bool:
        return bool(self.create or self.delete)


def surge(daemon_set: apps.DaemonSet, nodes: int) -> int:
    """Return how many of the nodes may have a second pod during an update; a percentage rounds up."""
    strategy = daemon_set.spec.updateStrategy
    if strategy.type != "RollingUpdate" or not strategy.rollingUpdate.HasField("maxSurge"):
        return 0
    return amount(strategy.rollingUpdate.maxSurge, nodes, up=True)


@dataclass(frozen=True, slots=True)
class Placement:
    """A daemon set at one moment: its nodes, its pods on them, and the revision of its template."""

    daemon_set: apps.DaemonSet
    digest: str
    verdicts: Mapping[str, Verdict]
    pods: PodsByNode
    now_seconds: float

    def available(self, pod: core.Pod) -> bool:
        return is_available(pod, self.daemon_set.spec.minReadySeconds, self.now_seconds)

    def plan(self, failed: FailedPods) -> Work:
        """Return the work that leaves one pod on each node that runs one, or two while it surges."""
        work = Work()
        surges = surge(self.daemon_set, 1) > 0
        for node, (runs, keeps) in self.verdicts.items():
            pods = self.pods.get(node, ())
            if keeps and pods:
                active = self._replace_ended(node, pods, failed, work)
                if not surges:
                    work.delete += active[1:]
                elif len(active) > 1:
                    work.delete += self._surplus(active)
                elif not active and runs:
                    work.create.append(node)
            elif runs:
                work.create.append(node)
            elif pods:
                work.delete += [pod for pod in pods if not is_terminating(pod)]
        # No garbage collector deletes a pod that no node has got.
        for node, pods in self.pods.items():
            if node not in self.verdicts:
                work.delete += [p for p in pods if not p.spec.nodeName and not is_terminating(p)]
        return work

    def _replace_ended(
        self, node: str, pods: Sequence[core.Pod], failed: FailedPods, work: Work
    ) -> Sequence[core.Pod]:
        """Delete the node's pods that ended, unless their back-off lasts; return those that run."""
        if len(pods) == 1 and not has_ended(pods[0]):
            return () if is_terminating(pods[0]) else pods
        active = []
        for pod in pods:
            if is_terminating(pod):
                continue
            found = f"daemon pod {pod.metadata.namespace}/{pod.metadata.name} on node {node}, will try to"
            if pod.status.phase == "Failed":
                delay = failed.delay(node, self.now_seconds)
                if delay:
                    work.again_seconds = min(delay, work.again_seconds or delay)
                    continue
                work.events.append(
                    PlannedEvent("FailedDaemonPod", f"Found failed {found} kill it", "Warning")
                )
                work.delete.append(pod)
            elif pod.status.phase == "Succeeded":
                work.events.append(PlannedEvent("SucceededDaemonPod", f"Found succeeded {found} delete it"))
                work.delete.append(pod)
            else:
                active.append(pod)
        return active

    def _surplus(self, active: Sequence[core.Pod]) -> list[core.Pod]:
        """Return the pods that a surging node has too many.

        The oldest of the new revision and the oldest of an old one stay, while the old one is ready and the
        new one is not yet available.
        """
        new = [pod for pod in active if is_of(pod, self.digest)]
        old = [pod for pod in active if not is_of(pod, self.digest)]
        surplus = new[1:] + old[1:]
        if new and old and (not is_ready(old[0]) or self.available(new[0])):
            surplus.append(old[0])
        return surplus


def status_of(at: Placement, *, observed: bool) -> apps.DaemonSetStatus:
    """Return the status; `observed` says that the controller acted on this generation.

    The oldest pod of a node counts.
    """
    status = apps.DaemonSetStatus()
    status.CopyFrom(at.daemon_set.status)
    if observed:
        status.observedGeneration = at.daemon_set.metadata.generation
    desired = misscheduled = 0
    oldest = []
    for node, (runs, _) in at.verdicts.items():
        pods = at.pods.get(node)
        desired += runs
        if pods and runs:
            oldest.append(pods[0])
        misscheduled += bool(pods) and not runs
    status.desiredNumberScheduled, status.numberMisscheduled = desired, misscheduled
    status.currentNumberScheduled = len(oldest)
    status.updatedNumberScheduled = sum(is_of(pod, at.digest) for pod in oldest)
    status.numberReady = sum(map(is_ready, oldest))
    status.numberAvailable = sum(map(at.available, oldest))
    status.numberUnavailable = desired - status.numberAvailable
    return status


def recheck_seconds(at: Placement) -> float | None:
    """Return after how many seconds ready pods may have become available by time alone.

    Those of a surge count, too, which the status leaves out.
    """
    seconds = at.daemon_set.spec.minReadySeconds
    if not seconds:
        return None
    waits = any(is_ready(pod) and not at.available(pod) for pods in at.pods.values() for pod in pods)
    return seconds if waits else None
