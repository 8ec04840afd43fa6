"""Removals of objects that got their first finalizer while a DELETE was under way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from nominee.lab.history.invariants.checking.answers import Answer, Method, Outcome
from nominee.lab.history.invariants.checking.checker import Violation
from nominee.lab.history.revision import Revision
from nominee.machinery.api.objects import metadata_of

UNDER_WAY_SECONDS: Final = 2.0
"""For how long a DELETE may be under way where its answer is not known."""


class _Removal(NamedTuple):
    """A removal, the write of the first finalizer before it, and the violation if the DELETE came later."""

    write: Revision
    revision: Revision
    violation: Violation


class LateFinalizers:
    """The first finalizers of objects, and the removals after them whose DELETE has no answer yet.

    A DELETE looks at finalizers once, when it has read the object. Source: kube-apiserver 1.36, Store.Delete.
    """

    def __init__(self) -> None:
        self._finalized: dict[str, Revision] = {}
        """The writes that gave finalizers to objects which had none, by key."""
        self._removals: list[_Removal] = []

    def observe(self, revision: Revision) -> None:
        """Note an object that gets its first finalizers."""
        before, obj = revision.previous, revision.object
        if before is None or obj is None or metadata_of(before).finalizers:
            return
        if metadata_of(obj).finalizers:
            self._finalized[revision.key] = revision

    def pop(self, key: str) -> Revision | None:
        """Return the write of the first finalizers of an object that is removed now."""
        return self._finalized.pop(key, None)

    def wait(self, finalized: Revision, removal: Revision, violation: Violation) -> None:
        """Let a removal wait for the answer to its DELETE."""
        self._removals.append(_Removal(finalized, removal, violation))

    def judge(self, answer: Answer) -> Iterator[tuple[Violation, bool]]:
        """Yield violations that waited for this answer, and whether its DELETE came before the finalizer."""
        if not self._removals or answer.method is not Method.DELETE or answer.outcome is not Outcome.DONE:
            return
        key = answer.kind.key(answer.namespace, answer.name)
        for each in list(self._removals):
            if each.revision.key == key and answer.spans(each.revision.revision):
                self._removals.remove(each)
                yield each.violation, answer.begin < each.write.revision

    def remaining(self) -> Iterator[Violation]:
        """Yield the violations that wait for an answer still."""
        yield from (each.violation for each in self._removals)
