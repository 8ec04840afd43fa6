"""A volume claim, a volume or a resource claim stays while it is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nominee.lab.history.invariants.checking.answers import Answer
from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.late_finalizers import UNDER_WAY_SECONDS, LateFinalizers
from nominee.lab.history.invariants.checking.pods import ended_pod, is_terminal, same_pod_before
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, RESOURCE_CLAIM
from nominee.machinery.api.objects import metadata_of
from nominee.machinery.api.pb import core
from nominee.machinery.api.volume_claims import claims_of

_PHASE_SECONDS: Final = 10.0
"""How long the write of a volume's phase may come after that of its claim."""


class ProtectedClaims(Checker):
    """Looks at the removal of each claim and volume for those that use it.

    A finalizer keeps it, which its controller removes when the last pod is gone, that of a resource claim
    when it has ended. Who removes the finalizer by hand takes the consequences.
    Source: kube-controller-manager 1.36, pvcprotection, pvprotection, resourceclaim.
    """

    about = Invariant(
        name="claims-in-use-stay",
        description="No claim is removed that a pod on a node uses, and no volume that is bound to a claim.",
        checks="removals of volume claims, volumes and resource claims",
        exceptions={
            "bound-late": "the pod was bound when the claim was being deleted already",
            "deletion-under-way": "the resource claim got its first finalizer after the DELETE was sent, or, "
            f"where no answers are known, up to {UNDER_WAY_SECONDS:g} s before: a DELETE looks at "
            "finalizers once, when it has read the object",
            "phase-unwritten": "the volume's phase was not Bound, and its claim has named it for less than "
            f"{_PHASE_SECONDS:.0f} s: only the phase protects it",
        },
    )
    takes_answers = True
    needs_answers = False
    kinds = frozenset({POD, PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME, RESOURCE_CLAIM})

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._bound: dict[str, Revision] = {}
        """The bindings of the pods that are on a node, by uid."""
        self._ended: set[str] = set()
        """Those of them that have ended: they keep volume claims until they are gone, no resource claims."""
        self._claims: dict[str, tuple[str, float]] = {}
        """The volume of each volume claim, and since when, by uid."""
        self._deleted: dict[str, int] = {}
        """The revision at which the deletion of an object began, by key."""
        self._late = LateFinalizers()
        """Those of resource claims; others get their finalizer when they are created."""

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a pod or a claim, or check a removal."""
        if revision.kind is POD:
            self._observe_pod(revision)
            return
        claim = revision.after(PERSISTENT_VOLUME_CLAIM)
        if claim is not None:
            name, _ = self._claims.get(claim.metadata.uid, ("", 0.0))
            if name != claim.spec.volumeName:
                self._claims[claim.metadata.uid] = claim.spec.volumeName, revision.time
        if revision.object is not None and metadata_of(revision.object).HasField("deletionTimestamp"):
            self._deleted.setdefault(revision.key, revision.revision)
        if revision.kind is RESOURCE_CLAIM:
            self._late.observe(revision)
        if revision.value is None and not revision.is_state:
            began = self._deleted.pop(revision.key, revision.revision)
            yield from self._check_removal(revision, began)

    def observe_answer(self, answer: Answer) -> Iterator[Violation]:
        """Judge the removal of a resource claim by when its DELETE was sent."""
        for violation, is_under_way in self._late.judge(answer):
            if is_under_way:
                self.allow("deletion-under-way")
            else:
                yield violation

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Report the removals whose DELETE has no answer."""
        yield from self._late.remaining()

    def _check_removal(self, revision: Revision, began: int) -> Iterator[Violation]:
        self.checked += 1
        finalized = self._late.pop(revision.key)
        for binding in list(self._bound.values()):
            pod = binding.after(POD)
            if pod is None or not _uses(pod, revision):
                continue
            if revision.kind is RESOURCE_CLAIM and pod.metadata.uid in self._ended:
                continue
            if binding.revision > began:
                self.allow("bound-late")
                continue
            problem = f"it was removed, and {binding.subject} uses it on node {pod.spec.nodeName!r}"
            violation = self.violation(problem, binding, revision)
            if finalized is None or began != revision.revision:
                yield violation
            elif self.settings.observes_answers:
                self._late.wait(finalized, revision, violation)
            elif self.served_time.between(finalized.time, revision.time) <= UNDER_WAY_SECONDS:
                self.allow("deletion-under-way")
            else:
                yield violation
        volume, former = revision.before(PERSISTENT_VOLUME), revision.before(PERSISTENT_VOLUME_CLAIM)
        if former is not None:
            self._claims.pop(former.metadata.uid, None)
        if volume is None:
            return
        name, since = self._claims.get(volume.spec.claimRef.uid, ("", 0.0))
        if name != volume.metadata.name:
            return
        # Protected is a volume whose phase says that it is bound (pv_protection_controller.go, isBeingUsed).
        is_new = self.served_time.between(since, revision.time) < _PHASE_SECONDS
        if volume.status.phase != "Bound" and is_new:
            self.allow("phase-unwritten")
        else:
            yield self.violation(
                f"it was removed, and the claim {volume.spec.claimRef.name} has it", revision
            )

    def _observe_pod(self, revision: Revision) -> None:
        ended, pod, before = ended_pod(revision), revision.after(POD), same_pod_before(revision)
        if ended is not None:
            self._bound.pop(ended.metadata.uid, None)
            self._ended.discard(ended.metadata.uid)
        if pod is None or not pod.spec.nodeName:
            return
        if not (before and before.spec.nodeName):
            self._bound[pod.metadata.uid] = revision
        if is_terminal(pod):
            self._ended.add(pod.metadata.uid)


def _uses(pod: core.Pod, removal: Revision) -> bool:
    """Return whether a pod uses the removed object: a volume claim by its name, another by reservation."""
    claim = removal.before(RESOURCE_CLAIM)
    if claim is not None:
        return any(user.uid == pod.metadata.uid for user in claim.status.reservedFor)
    if removal.before(PERSISTENT_VOLUME_CLAIM) is None or pod.metadata.namespace != removal.namespace:
        return False
    return removal.name in claims_of(pod)
