"""A pod's nominatedNodeName follows its states: pending, nominated, bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.pods import same_pod_before
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import POD
from nominee.machinery.api.objects import is_terminating
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import is_resize_deferred


class NominationState(Enum):
    """A pod's state by `spec.nodeName` and `status.nominatedNodeName`.

    NOMINATED stands for two of KEP-5278's states, which look the same in the object: waiting for preemption,
    and allocated, waiting for binding.
    """

    ABSENT = "does not exist"
    PENDING = "pending"
    NOMINATED = "nominated"
    BOUND = "bound"
    BOUND_NOMINATED = "bound and nominated"


class Verdict(Enum):
    """The verdict on a change of a pod's state by one write."""

    ALLOWED = "allowed"
    FORBIDDEN = "forbidden"
    WITHOUT_CLEARING = "allowed if ClearingNominatedNodeNameAfterBinding is off"


_ALLOWED, _FORBIDDEN, _WITHOUT_CLEARING = Verdict.ALLOWED, Verdict.FORBIDDEN, Verdict.WITHOUT_CLEARING
TRANSITIONS: Final[Mapping[tuple[NominationState, NominationState], Verdict]] = MappingProxyType({
    (NominationState.ABSENT, NominationState.PENDING): _ALLOWED,
    (NominationState.ABSENT, NominationState.NOMINATED): _FORBIDDEN,  # a new pod has no status
    (NominationState.ABSENT, NominationState.BOUND): _ALLOWED,
    (NominationState.ABSENT, NominationState.BOUND_NOMINATED): _FORBIDDEN,
    (NominationState.PENDING, NominationState.NOMINATED): _ALLOWED,
    (NominationState.PENDING, NominationState.BOUND): _ALLOWED,
    (NominationState.PENDING, NominationState.BOUND_NOMINATED): _FORBIDDEN,  # binding nominates no node
    (NominationState.NOMINATED, NominationState.PENDING): _ALLOWED,
    (NominationState.NOMINATED, NominationState.NOMINATED): _ALLOWED,  # to another node
    (NominationState.NOMINATED, NominationState.BOUND): _ALLOWED,
    (NominationState.NOMINATED, NominationState.BOUND_NOMINATED): _WITHOUT_CLEARING,
    (NominationState.BOUND, NominationState.BOUND_NOMINATED): _WITHOUT_CLEARING,
    (NominationState.BOUND_NOMINATED, NominationState.BOUND): _ALLOWED,
    (NominationState.BOUND_NOMINATED, NominationState.BOUND_NOMINATED): _WITHOUT_CLEARING,
})  # fmt: skip
"""The writes that change nodeName or nominatedNodeName, but for a bound pod's loss of its node, which
`one-node-per-pod` reports.

Source: KEP-5278, "Design Details"; kube-apiserver 1.36, BindingREST.
"""


class Nominations(Checker):
    """Checks each write that changes `spec.nodeName` or `status.nominatedNodeName` against TRANSITIONS."""

    about = Invariant(
        name="nominations-follow-states",
        description="nominatedNodeName follows KEP-5278's states, and is empty after binding with "
        "ClearingNominatedNodeNameAfterBinding on.",
        checks="changes of nodeName or nominatedNodeName",
        exceptions={
            "deferred-resize": "a bound pod with a deferred resize is nominated to its own node, with "
            "--allow-nominated-node-name-of-deferred-resizes (KEP-5836, Option 3)",
            "kept-after-binding": "the nomination stays after binding: "
            "ClearingNominatedNodeNameAfterBinding is off, or was not the same all the time",
        },
        counts={
            "nominations": "writes that nominated a pod to a node",
            "bound-elsewhere": "pods that were bound to another node than the nominated one",
        },
    )
    kinds = frozenset({POD})
    reads_settings = True

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Check one write of a pod."""
        pod, before = revision.after(POD), same_pod_before(revision)
        if pod is None or revision.is_state:
            return
        node, nominated = pod.spec.nodeName, pod.status.nominatedNodeName
        former = ("", "") if before is None else (before.spec.nodeName, before.status.nominatedNodeName)
        if before is not None and (node, nominated) == former:
            return
        old, new = state_of(before), state_of(pod)
        verdict = TRANSITIONS.get((old, new))
        if verdict is None:
            return
        self.checked += 1
        self.count("nominations", int(bool(nominated) and nominated != former[1]))
        if node and not former[0]:
            self.count("bound-elsewhere", int(former[1] not in ("", node)))
        if verdict is _WITHOUT_CLEARING and self._is_excepted(pod):
            return
        if verdict is not _ALLOWED:
            yield self.violation(
                f"the pod was {_text(before, old)} and is {_text(pod, new)}; this is {verdict.value}",
                revision,
            )

    def _is_excepted(self, pod: core.Pod) -> bool:
        of_resize = pod.status.nominatedNodeName == pod.spec.nodeName and is_resize_deferred(pod)
        if of_resize and self.settings.nominates_deferred_resizes:
            self.allow("deferred-resize")
            return True
        if self.settings.clears_nominations:
            return False
        self.allow("kept-after-binding")
        return True


def state_of(pod: core.Pod | None) -> NominationState:
    """Return the pod's state; None is a pod that does not exist."""
    if pod is None:
        return NominationState.ABSENT
    if pod.spec.nodeName:
        return NominationState.BOUND_NOMINATED if pod.status.nominatedNodeName else NominationState.BOUND
    return NominationState.NOMINATED if pod.status.nominatedNodeName else NominationState.PENDING


def _text(pod: core.Pod | None, state: NominationState) -> str:
    if pod is None:
        return "new"
    parts = [state.value]
    if pod.spec.nodeName:
        parts.append(f"nodeName {pod.spec.nodeName}")
    if pod.status.nominatedNodeName:
        parts.append(f"nominatedNodeName {pod.status.nominatedNodeName}")
    if is_terminating(pod):
        parts.append("terminating")
    return ", ".join(parts)
