"""The autoscaler keeps the limits of its node groups, and asks for each instance once."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.cloud_calls import CloudCall
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.checking.pods import ended_pod, is_pending
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import NODE, POD
from nominee.pb.clusterautoscaler.cloudprovider.v1.externalgrpc import externalgrpc_pb2 as protocol

_TAINT: Final = "ToBeDeletedByClusterAutoscaler"
_SEEN_SECONDS: Final = 65.0
"""How long the autoscaler may not have seen a pod's change: it gives up a lost list after 60 s."""
_NEW_SECONDS: Final = 15.0
"""How long an instance is expected at least, and how long its node may be unknown to the autoscaler."""
_REPETITIONS: Final = 2
"""A request whose answer was lost is made twice; a third time is once too often."""


class NodeGroups(Checker):
    """Follows sizes and instances of the groups as the cloud has shown them, and the requests to change them.

    Each pod needs one node at most, so that pods which wait (also those of a node that is drained) bound the
    instances that may be under way; an answer that was lost explains one request too many. An instance whose
    node exists is deleted after its node was tainted; one that has no node was created in vain.
    Source: cluster-autoscaler 1.36, core/scaleup, core/scaledown/actuation.
    """

    about = Invariant(
        name="node-groups-keep-their-limits",
        description="The autoscaler asks for no instance above a group's maximum, and for none while there "
        "are as many on their way as pods wait; it deletes an instance with a node once, when the node has "
        "its taint, and none below the minimum.",
        checks="requests to change a node group",
        exceptions={
            "given-up": "the node's deletion had begun, and then an instance that had no node was given up: "
            "the autoscaler compares both with the size, and not with each other",
        },
    )
    kinds = frozenset({POD, NODE})
    takes_answers = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._limits: dict[str, tuple[int, int]] = {}
        self._sizes: dict[str, int] = {}
        self._instances: dict[str, dict[str, float]] = {}
        """For each group, since when the instances are known that are not being deleted, and did not fail."""
        self._failed: dict[str, set[str]] = {}
        """For each group the instances that could not be created: they are part of its size."""
        self._deletions: Counter[tuple[int, str]] = Counter()
        self._needless: dict[tuple[int, str], float] = {}
        self._waiting: set[str] = set()
        self._left: deque[float] = deque()
        """When pods stopped to wait, or were removed from a node that is drained."""
        self._pods: dict[str, set[str]] = {}
        self._created: dict[str, float] = {}
        self._given_up: dict[str, list[int]] = {}
        """For each group the revisions at which it became smaller by an instance that had no node."""
        self._tainted: dict[str, list[tuple[int, bool]]] = {}
        """For each node the revisions at which it got the taint, or lost it."""

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a pod that waits or runs, or a node."""
        if revision.kind is NODE:
            self._observe_node(revision)
        else:
            self._observe_pod(revision)
        yield from ()

    def _observe_node(self, revision: Revision) -> None:
        name, node = revision.name, revision.after(NODE)
        if node is None:
            self._created.pop(name, None)
            self._tainted.pop(name, None)
            return
        self._created.setdefault(name, revision.time)
        changes = self._tainted.setdefault(name, [(0, False)])
        is_tainted = any(taint.key == _TAINT for taint in node.spec.taints)
        if is_tainted is not changes[-1][1]:
            changes.append((revision.revision, is_tainted))

    def _observe_pod(self, revision: Revision) -> None:
        ended, pod = ended_pod(revision), revision.after(POD)
        for former, waits in ((ended, False), (pod, pod is not None and is_pending(pod))):
            if former is None:
                continue
            uid = former.metadata.uid
            if waits and not former.spec.schedulingGates:
                self._waiting.add(uid)
            elif uid in self._waiting:
                self._waiting.discard(uid)
                self._left.append(revision.time)
        if ended is not None and ended.spec.nodeName:
            self._pods.get(ended.spec.nodeName, set()).discard(ended.metadata.uid)
            self._left.append(revision.time)
        if pod is not None and pod.spec.nodeName:
            self._pods.setdefault(pod.spec.nodeName, set()).add(pod.metadata.uid)

    def observe_cloud(self, call: CloudCall) -> Iterator[Violation]:
        """Note the groups that the cloud shows, or check a request to change one."""
        request, response = call.request, call.response
        match request, response:
            case _, protocol.NodeGroupsResponse():
                self._limits = {each.id: (each.minSize, each.maxSize) for each in response.nodeGroups}
            case protocol.NodeGroupTargetSizeRequest(), protocol.NodeGroupTargetSizeResponse():
                self._sizes[request.id] = response.targetSize
            case protocol.NodeGroupNodesRequest(), protocol.NodeGroupNodesResponse():
                known = self._instances.get(request.id, {})
                living, self._failed[request.id] = _living(response), set(_failed(response))
                self._instances[request.id] = {name: known.get(name, call.begin_time) for name in living}
            case protocol.NodeGroupDecreaseTargetSizeRequest(), _:
                delta = request.delta if response is not None else 0
                self._sizes[request.id] = self._sizes.get(request.id, 0) + delta
                self._given_up.setdefault(request.id, []).extend([call.begin] * -delta)
            case protocol.NodeGroupIncreaseSizeRequest(), _:
                self.checked += 1
                yield from self._check_increase(request, call)
            case protocol.NodeGroupDeleteNodesRequest(), _:
                self.checked += 1
                yield from self._check_deletion(request, call)

    def _check_increase(
        self, request: protocol.NodeGroupIncreaseSizeRequest, call: CloudCall
    ) -> Iterator[Violation]:
        group = request.id
        size, (least, most) = self._sizes.get(group, 0) + request.delta, self._limits.get(group, (0, 0))
        if size > most:
            yield self._violation(group, f"asked for the size {size}, and its maximum is {most}")
        if call.response is None:
            return
        self._sizes[group] = size
        now, instances = call.begin_time, self._instances.get(group, {})
        new = [name for name, since in instances.items() if now - since < _NEW_SECONDS]
        coming = sum(name not in self._created for name in new)
        waiting = self._pods_without_node(now)
        if size <= least or coming + request.delta <= waiting:
            return
        key = call.client_pid, group
        if not coming or now - self._needless.get(key, float("-inf")) < _NEW_SECONDS:
            problem = f"asked for {request.delta} more, beside {coming} on their way, for {waiting} pods"
            yield self._violation(group, problem)
        self._needless[key] = now

    def _pods_without_node(self, now: float) -> int:
        while self._left and self.served_time.between(self._left[0], now) > _SEEN_SECONDS:
            self._left.popleft()
        tainted = {name for name, changes in self._tainted.items() if changes[-1][1]}
        drained = sum(len(self._pods.get(name, ())) for name in tainted)
        return len(self._waiting) + len(self._left) + drained

    def _check_deletion(
        self, request: protocol.NodeGroupDeleteNodesRequest, call: CloudCall
    ) -> Iterator[Violation]:
        group, instances = request.id, self._instances.get(request.id, {})
        names = {node.providerID or node.name for node in request.nodes}
        size, least = self._sizes.get(group, 0), self._limits.get(group, (0, 0))[0]
        for name in sorted(names):
            self._deletions[call.client_pid, name] += 1
            if self._deletions[call.client_pid, name] > _REPETITIONS:
                yield self._violation(group, f"deleted the instance {name} again and again")
            if name not in self._created:
                if call.response is not None:
                    self._given_up.setdefault(group, []).append(call.begin)
                continue
            is_old = self.served_time.between(self._created[name], call.begin_time) > _NEW_SECONDS
            if is_old and not self._was_tainted(name, call.begin):
                yield self._violation(group, f"deleted the instance {name}, whose node has no taint")
            if name in instances and size <= least:
                if size + self._given_up_since(group, name) > least:
                    self.allow("given-up")
                else:
                    problem = f"deleted the instance {name} at the size {size}, and its minimum is {least}"
                    yield self._violation(group, problem)
            size -= name in instances
        if call.response is not None:
            failed = self._failed.get(group, set())
            self._sizes[group] = self._sizes.get(group, 0) - len(names & (instances.keys() | failed))
            self._instances[group] = {name: at for name, at in instances.items() if name not in names}
            self._failed[group] = failed - names

    def _given_up_since(self, group: str, node: str) -> int:
        """Return how many instances without a node a group has lost since this node got its taint.

        Source: cluster-autoscaler 1.36, removeOldUnregisteredNodes, which does not ask what is being deleted.
        """
        begun = max((at for at, is_tainted in self._tainted[node] if is_tainted), default=None)
        return 0 if begun is None else sum(at >= begun for at in self._given_up.get(group, ()))

    def _was_tainted(self, name: str, begin: int) -> bool:
        """Return whether a node had the taint at a revision, or has got it since."""
        changes = self._tainted[name]
        at = max(index for index, (revision, _) in enumerate(changes) if revision <= begin)
        return any(is_tainted for _, is_tainted in changes[at:])

    def _violation(self, group: str, problem: str) -> Violation:
        return self.violation(f"the autoscaler {problem}", objects=(f"node group {group}",))


def _living(response: protocol.NodeGroupNodesResponse) -> Iterator[str]:
    """Yield the instances that are created or run, and have no error."""
    return (each.id for each in response.instances if not (_is_deleted(each) or _has_error(each)))


def _failed(response: protocol.NodeGroupNodesResponse) -> Iterator[str]:
    """Yield the instances with an error that are not being deleted."""
    return (each.id for each in response.instances if _has_error(each) and not _is_deleted(each))


def _is_deleted(instance: protocol.Instance) -> bool:
    return instance.status.instanceState == protocol.InstanceStatus.instanceDeleting


def _has_error(instance: protocol.Instance) -> bool:
    return bool(instance.status.errorInfo.errorCode)
