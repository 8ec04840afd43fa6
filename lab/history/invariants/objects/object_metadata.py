"""The API server keeps an object's metadata: its identity, its end, its generation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from google.protobuf.message import Message

from nominee.lab.history.invariants.checking.answers import Answer
from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.late_finalizers import UNDER_WAY_SECONDS, LateFinalizers
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import EVENT, KINDS, LEASE
from nominee.machinery.api.objects import copy_of, metadata_of
from nominee.machinery.api.pb import core

_OF_GARBAGE_COLLECTION: Final = {"orphan", "foregroundDeletion"}
"""Finalizers that a deletion adds, and removes, by itself for its propagationPolicy."""
_OF_DELETION: Final = ("finalizers", "deletionTimestamp", "deletionGracePeriodSeconds")
"""The fields that another DELETE of an object that is being deleted may change."""


class ObjectMetadata(Checker):
    """Compares the metadata of an object before and after each write of it.

    Source: kube-apiserver 1.36, rest.BeforeUpdate and BeforeDelete, ValidateObjectMetaUpdate; a write that
    changes nothing but managed fields' times is left out (GuaranteedUpdate, ignoreManagedFieldsTimestamps).
    """

    about = Invariant(
        name="metadata-is-kept",
        description="An object keeps its uid and creationTimestamp. It waits for its finalizers, stays "
        "deleted, gets no finalizer then; but for a pod's, its deletionTimestamp stays. Its generation "
        "grows by one when its spec changes, and only then or when it is deleted; its status is of no later "
        "one. A write changes something.",
        checks="updates and removals of objects, but for leases and events",
        exceptions={
            "deletion-under-way": "an object that got its first finalizer up to "
            f"{UNDER_WAY_SECONDS:g} s before, or after the DELETE was sent, is removed: a DELETE looks at "
            "finalizers once, when it has read the object",
            "another-deletion": "another DELETE of an object that is being deleted adds the finalizer of its "
            "propagationPolicy, and changes nothing else",
        },
    )
    takes_answers = True
    needs_answers = False
    kinds = frozenset(set(KINDS) - {LEASE, EVENT})

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._late = LateFinalizers()

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Compare an object with its former state."""
        if revision.is_state or not revision.is_readable:
            return
        before, obj = revision.previous, revision.object
        if before is None:
            return
        self.checked += 1
        old = metadata_of(before)
        if obj is None:
            finalized = self._late.pop(revision.key)
            if set(old.finalizers) - _OF_GARBAGE_COLLECTION and not old.HasField("deletionTimestamp"):
                yield from self._check_removal(revision, finalized)
            return
        self._late.observe(revision)
        for problem in _problems(before, obj):
            yield self.violation(problem, revision)
        added = _finalizers_of_deleted(before, obj)
        if added and added <= _OF_GARBAGE_COLLECTION and _is_deleted_again(before, obj):
            self.allow("another-deletion")
        elif added:
            names = ", ".join(sorted(added))
            yield self.violation(f"the object was deleted, and got the finalizers {names}", revision)

    def _check_removal(self, revision: Revision, finalized: Revision | None) -> Iterator[Violation]:
        """Check the removal of an object that has finalizers, and was not being deleted."""
        violation = self.violation("the object was removed at once, and had finalizers", revision)
        if finalized is not None and revision.time - finalized.time <= UNDER_WAY_SECONDS:
            self.allow("deletion-under-way")
        elif finalized is not None and self.settings.observes_answers:
            self._late.wait(finalized, revision, violation)
        else:
            yield violation

    def observe_answer(self, answer: Answer) -> Iterator[Violation]:
        """Drop the removal by a DELETE that was sent before the object had finalizers."""
        for violation, is_under_way in self._late.judge(answer):
            if is_under_way:
                self.allow("deletion-under-way")
            else:
                yield violation

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Report the removals whose DELETE has no answer."""
        yield from self._late.remaining()


def _problems(before: Message, obj: Message) -> Iterator[str]:
    old, new = metadata_of(before), metadata_of(obj)
    if (old.uid, old.creationTimestamp) != (new.uid, new.creationTimestamp):
        yield "the object has another uid or creationTimestamp"
    if old.HasField("deletionTimestamp"):
        if not new.HasField("deletionTimestamp"):
            yield "the object was deleted, and is not any more"
        elif old.deletionTimestamp != new.deletionTimestamp and not isinstance(obj, core.Pod):
            yield "the object was deleted, and its deletionTimestamp changed"
    yield from _generations(before, obj)
    if _is_idle(before, obj):
        yield "the write changes nothing"


def _finalizers_of_deleted(before: Message, obj: Message) -> set[str]:
    """Return the finalizers that an object got which was being deleted already."""
    old = metadata_of(before)
    return (
        set(metadata_of(obj).finalizers) - set(old.finalizers) if old.HasField("deletionTimestamp") else set()
    )


def _is_deleted_again(before: Message, obj: Message) -> bool:
    """Return whether a write may be that of another DELETE, which has a propagationPolicy of its own.

    Source: kube-apiserver 1.36, updateForGracefulDeletionAndFinalizers: only a deletion whose grace period
    has not passed refuses the finalizers of the next one.
    """
    states = [copy_of(before), copy_of(obj)]
    for state in states:
        for name in _OF_DELETION:
            metadata_of(state).ClearField(name)
    return states[0] == states[1]


def _generations(before: Message, obj: Message) -> Iterator[str]:
    old, new = metadata_of(before), metadata_of(obj)
    observed = getattr(getattr(obj, "status", None), "observedGeneration", 0)
    if observed > new.generation:
        yield f"the status is of generation {observed}, and the object has generation {new.generation}"
    if not old.generation and not new.generation:
        return
    spec, former = getattr(obj, "spec", None), getattr(before, "spec", None)
    grown = new.generation - old.generation
    if grown not in (0, 1):
        yield f"the generation went from {old.generation} to {new.generation}"
    elif not grown and spec != former and not _is_bound_now(before, obj):
        yield f"the spec changed, and the generation is still {new.generation}"
    elif grown and spec is not None and spec == former and not _counts(before, obj):
        yield f"the generation became {new.generation}, and the spec did not change"


def _is_bound_now(before: Message, obj: Message) -> bool:
    """Return whether a write is a binding, which no generation counts."""
    if not (isinstance(before, core.Pod) and isinstance(obj, core.Pod)):
        return False
    return before.spec.nodeName != obj.spec.nodeName


def _counts(before: Message, obj: Message) -> bool:
    """Return whether a generation counts a change beside the spec's: its end, a Deployment's annotations."""
    old, new = metadata_of(before), metadata_of(obj)
    is_deleted = new.HasField("deletionTimestamp") and old.deletionTimestamp != new.deletionTimestamp
    return is_deleted or dict(old.annotations) != dict(new.annotations)


def _is_idle(before: Message, obj: Message) -> bool:
    """Return whether two states differ in the times of managed fields at most, and in their order."""
    if before.ByteSize() != obj.ByteSize():
        return False
    return _without_times(before) == _without_times(obj)


def _without_times(obj: Message) -> Message:
    found = copy_of(obj)
    for entry in metadata_of(found).managedFields:
        entry.ClearField("time")
    return found
