"""Histories for the tests of checkers: objects that are put and deleted, as revisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from google.protobuf.message import Message

from nominee.lab.history.fold import Fold
from nominee.lab.history.invariants.check import Result, check
from nominee.lab.history.invariants.checking.answers import Answer, Method, Outcome
from nominee.lab.history.invariants.checking.checker import Checker, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.revision import Revision
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import key_of
from nominee.machinery.api.pb import coordination, core
from nominee.machinery.wire import envelope

BEGIN = 1_700_000_000.0
SECOND_PER_WRITE = 1.0


def pod(
    name: str,
    *,
    uid: str = "",
    node: str = "",
    nominated: str = "",
    priority: int = 0,
    cpu: str = "",
    allocated: str = "",
    host_ip: str = "",
    phase: str = "",
    scheduler: str = "default-scheduler",
    conditions: Mapping[str, str] | None = None,
    deletes_at: float = 0.0,
    finalizers: Sequence[str] = (),
) -> core.Pod:
    """Return a pod; `conditions` are reasons by type, `deletes_at` is its deletionTimestamp.

    With `allocated` (cpu) its container runs and reports allocatedResources.
    """
    found = core.Pod()
    found.metadata.name, found.metadata.namespace = name, "default"
    found.metadata.uid = uid or f"uid-{name}"
    found.metadata.finalizers.extend(finalizers)
    if deletes_at:
        found.metadata.deletionTimestamp.seconds = int(deletes_at)
    found.spec.nodeName = node
    found.spec.priority = priority
    found.spec.schedulerName = scheduler
    container = found.spec.containers.add(name="c")
    if cpu:
        container.resources.requests["cpu"].string = cpu
    found.status.nominatedNodeName = nominated
    found.status.phase = phase or ("Running" if allocated else "Pending")
    found.status.hostIP = host_ip
    if allocated:
        status = found.status.containerStatuses.add(name="c")
        status.state.running.SetInParent()
        status.allocatedResources["cpu"].string = allocated
        status.resources.requests["cpu"].string = allocated
    for type_, reason in (conditions or {}).items():
        found.status.conditions.add(type=type_, status="True", reason=reason)
    return found


def node(name: str, *, cpu: str = "4", ip: str = "", taints: Sequence[str] = ()) -> core.Node:
    """Return a node with cpu for pods, 110 of them."""
    found = core.Node()
    found.metadata.name, found.metadata.uid = name, f"uid-{name}"
    found.status.allocatable["cpu"].string = cpu
    found.status.allocatable["pods"].string = "110"
    if ip:
        found.status.addresses.add(type="InternalIP", address=ip)
    for key in taints:
        found.spec.taints.add(key=key, effect="NoSchedule")
    return found


def lease(node: str) -> coordination.Lease:
    """Return the lease of a node's kubelet."""
    found = coordination.Lease()
    found.metadata.name, found.metadata.namespace = node, "kube-node-lease"
    return found


def leader(holder: str, component: str = "kube-scheduler") -> coordination.Lease:
    """Return the lease of a component's leader."""
    found = lease(component)
    found.metadata.namespace, found.spec.holderIdentity = "kube-system", holder
    return found


def answered_write(client: str, pid: int, begin: int, seconds: float, *, kind: AnyKind = kinds.POD) -> Answer:
    """Return the answer to a write of a process at a revision, so many seconds after BEGIN."""
    return Answer(
        client=client,
        method=Method.PATCH,
        outcome=Outcome.DONE,
        kind=kind,
        namespace="default",
        name="p",
        begin=begin,
        end=begin,
        client_pid=pid,
        begin_time=BEGIN + seconds,
    )


def event(
    name: str,
    reason: str,
    about: core.Pod,
    *,
    note: str = "",
    related: core.Pod | None = None,
    count: int = 0,
) -> core.Event:
    """Return an event about a pod, as the API server stores those of a scheduler."""
    found = core.Event(reason=reason, message=note, count=count)
    found.metadata.name, found.metadata.namespace = name, "default"
    found.involvedObject.kind = "Pod"
    found.involvedObject.name, found.involvedObject.uid = about.metadata.name, about.metadata.uid
    found.involvedObject.namespace = about.metadata.namespace
    if related is not None:
        found.related.kind = "Pod"
        found.related.name, found.related.uid = related.metadata.name, related.metadata.uid
        found.related.namespace = related.metadata.namespace
    return found


@dataclass
class History:
    """Writes in order, one second apart."""

    revisions: list[Revision] = field(default_factory=list)
    fold: Fold = field(default_factory=Fold)
    next_revision: int = 1

    @property
    def now(self) -> float:
        return BEGIN + self.next_revision * SECOND_PER_WRITE

    def put(self, *objects: Message) -> History:
        """Write objects, each in a revision of its own."""
        for obj in objects:
            self._change(obj, envelope.encode(obj))
        return self

    def delete(self, obj: Message) -> History:
        """Delete an object."""
        self._change(obj, None)
        return self

    def wait(self, seconds: int) -> History:
        """Let time pass without a write."""
        self.next_revision += seconds
        return self

    def state(self, obj: Message) -> History:
        """Let the history begin with an object."""
        key = kinds.of(obj).key(*key_of(obj))
        self.revisions.append(self.fold.state(key, envelope.encode(obj), self.next_revision, self.now))
        self.next_revision += 1
        return self

    def _change(self, obj: Message, data: bytes | None) -> None:
        key = kinds.of(obj).key(*key_of(obj))
        self.revisions.append(self.fold.change(key, data, self.next_revision, self.now))
        self.next_revision += 1


def result_of(
    checker: type[Checker],
    history: History,
    settings: ComponentSettings | None = None,
    evidence: Evidence | None = None,
) -> Result:
    """Return the result of one invariant for a history."""
    (result,) = check(
        history.revisions,
        settings or ComponentSettings(),
        evidence or Evidence(now=history.now),
        {checker.about.name},
    )
    return result


def violations_of(
    checker: type[Checker],
    history: History,
    settings: ComponentSettings | None = None,
    evidence: Evidence | None = None,
) -> list[Violation]:
    """Return the violations of one invariant in a history; it must be checked."""
    result = result_of(checker, history, settings, evidence)
    assert not result.unchecked, result.unchecked
    return list(result.violations)
