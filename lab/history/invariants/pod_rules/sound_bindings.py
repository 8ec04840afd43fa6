"""A scheduler binds a pod to a node that suits it, with all that the pod mounts and uses."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, TypeVar

from google.protobuf.message import Message

from nominee.lab.history.invariants.checking.answers import Answer, Outcome
from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.checking.former_objects import FORMER_POD, FormerObjects
from nominee.lab.history.invariants.checking.pods import ended_pod, is_terminal, same_pod_before
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_GROUP,
    RESOURCE_CLAIM,
    Kind,
)
from nominee.machinery.api.objects import is_terminating
from nominee.machinery.api.pb import core
from nominee.machinery.api.volume_claims import claims_of
from nominee.machinery.runtime.clock import from_time
from nominee.machinery.scheduling import node_affinity
from nominee.machinery.scheduling.node_affinity import NodeSelector
from nominee.machinery.scheduling.taints import find_untolerated
from nominee.machinery.scheduling.volume_matching import SELECTED_NODE

M = TypeVar("M", bound=Message)
_Demand = Callable[[core.Node], str]
"""Returns the problem of a node, or ""."""
_STATES_MAX: Final = 8
"""Former states of a node that are kept."""
SEEN_SECONDS: Final = 15.0
"""How long a scheduler may not have seen a change of a node, or the loss of a volume or its claim."""


class SoundBindings(Checker):
    """Looks at pod, node, claims and volumes when a scheduler's binding is answered.

    PreBind comes before the binding: it binds the volumes and reserves the claims. A node whose taints or
    labels have just changed may have been another one for the scheduler, and so may one that a nominated pod
    waited for, on Permit or in PreBind. A nomination may be missing, as its gate is off or its write failed;
    then a volume claim shows by its selected node when the node was chosen. No finalizer keeps a volume claim
    whose pod is not on a node yet.
    Source: kube-scheduler 1.36, plugins volumebinding, dynamicresources, tainttoleration, nodeaffinity.
    """

    about = Invariant(
        name="bindings-are-sound",
        description="A scheduler binds a pod without gates, to a node whose labels suit it and whose taints "
        "it tolerates, when its group has all its pods, its claims are reserved for it, its volumes are "
        "bound on both sides, and the node can reach both.",
        checks="bindings of schedulers",
        exceptions={
            "node-changed": "the node, which would have suited the pod, its devices and volumes, changed "
            f"within {SEEN_SECONDS:.0f} s, or the pod was nominated before, or a volume was asked for there "
            "before the scheduler could see the change",
            "claim-removed": "a claim that was bound or reserved was removed, or lost its volume, within "
            f"{SEEN_SECONDS:.0f} s",
            **FORMER_POD,
        },
    )
    kinds = frozenset({POD, NODE, POD_GROUP, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM})
    takes_answers = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._newest: dict[str, Revision] = {}
        self._former_nodes: dict[str, deque[tuple[core.Node, float]]] = {}
        """The former states of a node, before its taints or labels changed, and until when it had them."""
        self._claims_removed: dict[str, float] = {}
        """When a claim that was in use was removed, or lost its volume, by key."""
        self._gone: Counter[str] = Counter()
        """How many pods of a group were removed: perhaps since it was tried."""
        self._chosen: dict[str, tuple[str, float]] = {}
        """The node that a volume claim selects, and since when, by key: PreBind of its pod had begun."""
        self._volumes_since: dict[str, float] = {}
        """When a volume claim was bound to its volume, by key."""
        self._waited: set[str] = set()
        """The pods, by uid, that were nominated to a node before they were bound."""
        self._former = FormerObjects()

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Keep the newest state of an object."""
        self._former.observe(revision)
        if revision.value is None:
            self._newest.pop(revision.key, None)
        else:
            self._newest[revision.key] = revision
        ended = ended_pod(revision)
        if ended is not None:
            self._gone[ended.spec.schedulingGroup.podGroupName] += 1
        before, pod = same_pod_before(revision), revision.after(POD)
        if before is not None and pod is not None and pod.spec.nodeName and before.status.nominatedNodeName:
            self._waited.add(pod.metadata.uid)
        if revision.value is None and _is_in_use(revision):
            self._claims_removed[revision.key] = revision.time
        if (lost := self._claim_of_lost_volume(revision)) is not None:
            self._claims_removed[lost] = revision.time
        self._observe_volume_claim(revision)
        old, new = revision.before(NODE), revision.after(NODE)
        if old is not None and (new is None or _placement(old) != _placement(new)):
            former = self._former_nodes.setdefault(revision.key, deque(maxlen=_STATES_MAX))
            former.append((old, revision.time))
        yield from ()

    def _claim_of_lost_volume(self, revision: Revision) -> str | None:
        """Return the key of the claim whose volume is removed, or no longer names it."""
        before, volume = revision.before(PERSISTENT_VOLUME), revision.after(PERSISTENT_VOLUME)
        if before is None or not before.spec.claimRef.uid:
            return None
        if volume is not None and volume.spec.claimRef.uid == before.spec.claimRef.uid:
            return None
        reference = before.spec.claimRef
        claim = self._get(PERSISTENT_VOLUME_CLAIM, reference.namespace, reference.name)
        if claim is None or claim.metadata.uid != reference.uid or claim.spec.volumeName != revision.name:
            return None
        return PERSISTENT_VOLUME_CLAIM.key(reference.namespace, reference.name)

    def _observe_volume_claim(self, revision: Revision) -> None:
        if revision.kind is not PERSISTENT_VOLUME_CLAIM:
            return
        claim, former = revision.after(PERSISTENT_VOLUME_CLAIM), revision.before(PERSISTENT_VOLUME_CLAIM)
        node = "" if claim is None else claim.metadata.annotations.get(SELECTED_NODE, "")
        if not node:
            self._chosen.pop(revision.key, None)
        elif self._chosen.get(revision.key, ("", 0.0))[0] != node:
            self._chosen[revision.key] = node, revision.time
        if claim is None or not claim.spec.volumeName:
            self._volumes_since.pop(revision.key, None)
        elif former is None or former.spec.volumeName != claim.spec.volumeName:
            self._volumes_since[revision.key] = revision.time

    def observe_answer(self, answer: Answer) -> Iterator[Violation]:
        """Check a binding that was made."""
        if not answer.node or answer.outcome is not Outcome.DONE or not answer.client.startswith("scheduler"):
            return
        seen, node = (
            self._newest.get(POD.key(answer.namespace, answer.name)),
            self._get(NODE, "", answer.node),
        )
        pod = self._get(POD, answer.namespace, answer.name)
        if seen is None or pod is None or node is None or pod.metadata.uid != answer.uid:
            return
        self.checked += 1
        yield from self._check_group(pod, seen)
        if pod.spec.schedulingGates:
            yield self.violation("the pod was bound, and has scheduling gates", seen)
        # What it used may be given back if it has ended before the answer came.
        has_ended = is_terminal(pod) or is_terminating(pod)
        chosen_at = min(self._times_of_choice(pod, answer))
        if not has_ended:
            for problem in (*self._claims(pod, chosen_at), *self._volumes(pod, chosen_at)):
                yield self.violation(f"the pod was bound to node {answer.node!r}, and {problem}", seen)
        waited = answer.uid in self._waited
        self._waited.discard(answer.uid)
        for problem_on in self._demands(pod, has_ended):
            problem = problem_on(node)
            if not problem:
                continue
            if any(
                not problem_on(former)
                for former, until in self._former_nodes.get(NODE.key("", answer.node), ())
                if waited or self.served_time.between(until, chosen_at) < SEEN_SECONDS
            ):
                self.allow("node-changed")
            else:
                yield self.violation(f"the pod was bound to node {answer.node!r}, {problem}", seen)

    def _demands(self, pod: core.Pod, has_ended: bool) -> Iterator[_Demand]:
        """Yield the demands of the pod, its devices and its volumes on a node."""
        yield partial(_problem_of_node, pod)
        if has_ended:
            return
        for _, name in _resource_claims(pod):
            claim = self._get(RESOURCE_CLAIM, pod.metadata.namespace, name)
            if claim is not None:
                problem = f"and its claim {name} has devices that the node does not reach"
                yield partial(_problem_of_reach, claim.status.allocation.nodeSelector, problem)
        for name in claims_of(pod):
            volume = self._volume_of(pod, name)
            if volume is not None:
                problem = f"and its volume {volume.metadata.name} is not where the node is"
                yield partial(_problem_of_reach, volume.spec.nodeAffinity.required, problem)

    def _times_of_choice(self, pod: core.Pod, answer: Answer) -> Iterator[float]:
        """Yield when, at the latest, the node was chosen for the pod.

        That is when it was asked for a volume there, if the pod was bound as soon as the volume was.
        """
        yield answer.begin_time
        for name in claims_of(pod):
            key = PERSISTENT_VOLUME_CLAIM.key(answer.namespace, name)
            if key not in self._chosen or key not in self._volumes_since:
                continue
            node, time = self._chosen[key]
            waited = self.served_time.between(self._volumes_since[key], answer.begin_time) < SEEN_SECONDS
            if node == answer.node and waited and time >= from_time(pod.metadata.creationTimestamp):
                yield time

    def _check_group(self, pod: core.Pod, seen: Revision) -> Iterator[Violation]:
        name = pod.spec.schedulingGroup.podGroupName
        group = self._get(POD_GROUP, pod.metadata.namespace, name)
        if group is None:
            return
        members = sum(
            each.namespace == seen.namespace and found.spec.schedulingGroup.podGroupName == name
            for each in self._newest.values()
            if (found := each.after(POD)) is not None
        )
        if members + self._gone[name] < group.spec.schedulingPolicy.gang.minCount:
            yield self.violation(f"the pod was bound, and its group {name} has {members} pods only", seen)

    def _get(self, kind: Kind[M], namespace: str, name: str) -> M | None:
        revision = self._newest.get(kind.key(namespace, name))
        return None if revision is None else revision.after(kind)

    def _claims(self, pod: core.Pod, now: float) -> Iterator[str]:
        for entry, name in _resource_claims(pod):
            claim = self._get(RESOURCE_CLAIM, pod.metadata.namespace, name)
            if claim is None or not claim.status.HasField("allocation"):
                problem = f"its claim {entry!r} is not allocated"
            elif all(user.uid != pod.metadata.uid for user in claim.status.reservedFor):
                problem = f"its claim {name} is not reserved for it"
            else:
                continue
            yield from self._unless_lost(problem, pod, RESOURCE_CLAIM.key(pod.metadata.namespace, name), now)

    def _unless_lost(self, problem: str, pod: core.Pod, claim_key: str, now: float) -> Iterator[str]:
        """Yield a problem unless the pod may have lost its claim after it was reserved."""
        pod_key = POD.key(pod.metadata.namespace, pod.metadata.name)
        if self._was_removed(claim_key, now):
            self.allow("claim-removed")
        elif self._former.was_deleted(pod_key, now, self.served_time):
            self.allow("former-pod")
        else:
            yield problem

    def _was_removed(self, key: str, now: float) -> bool:
        """Return whether a claim that was in use was removed, and the scheduler may not have seen it."""
        removed = self._claims_removed.get(key)
        return removed is not None and self.served_time.between(removed, now) < SEEN_SECONDS

    def _volumes(self, pod: core.Pod, now: float) -> Iterator[str]:
        for name in claims_of(pod):
            if self._was_removed(PERSISTENT_VOLUME_CLAIM.key(pod.metadata.namespace, name), now):
                self.allow("claim-removed")
            elif self._volume_of(pod, name) is None:
                yield f"its volume claim {name} is not bound on both sides"

    def _volume_of(self, pod: core.Pod, name: str) -> core.PersistentVolume | None:
        """Return the volume of a volume claim, if they are bound on both sides."""
        claim = self._get(PERSISTENT_VOLUME_CLAIM, pod.metadata.namespace, name)
        volume = None if claim is None else self._get(PERSISTENT_VOLUME, "", claim.spec.volumeName)
        if claim is None or volume is None or volume.spec.claimRef.uid != claim.metadata.uid:
            return None
        return volume


def _resource_claims(pod: core.Pod) -> Iterator[tuple[str, str]]:
    """Yield the name of each claim in the spec, and the name of its object, which may be ''."""
    made = {each.name: each.resourceClaimName for each in pod.status.resourceClaimStatuses}
    for each in pod.spec.resourceClaims:
        name = each.resourceClaimName or made.get(each.name, "")
        if name or each.name not in made:  # a template may need no claim
            yield each.name, name


def _is_in_use(revision: Revision) -> bool:
    """Return whether a claim was bound to a volume, or reserved for a pod."""
    volume_claim, claim = revision.before(PERSISTENT_VOLUME_CLAIM), revision.before(RESOURCE_CLAIM)
    is_bound = volume_claim is not None and bool(volume_claim.spec.volumeName)
    return is_bound or (claim is not None and bool(claim.status.reservedFor))


def _placement(node: core.Node) -> tuple[object, ...]:
    return dict(node.metadata.labels), [(each.key, each.value, each.effect) for each in node.spec.taints]


def _reaches(selector: core.NodeSelector, node: core.Node) -> bool:
    """Return whether a node is selected; without terms every node is."""
    if not selector.nodeSelectorTerms:
        return True
    return NodeSelector.read(selector).matches(node.metadata.labels, node.metadata.name)


def _problem_of_reach(selector: core.NodeSelector, problem: str, node: core.Node) -> str:
    return "" if _reaches(selector, node) else problem


def _problem_of_node(pod: core.Pod, node: core.Node) -> str:
    taint = find_untolerated(node.spec.taints, pod.spec.tolerations, comparison=True)
    if taint is not None:
        return f"whose taint {taint.key} it does not tolerate"
    return "" if node_affinity.matches(pod, node) else "which its node selector or affinity excludes"
