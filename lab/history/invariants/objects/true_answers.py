"""An answer of an API server was true at some moment between the request and the answer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from nominee.lab.history.invariants.checking.answers import Answer, Method, Outcome
from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.revision import Revision, subject_of
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import metadata_of
from nominee.machinery.api.pb import core

_VERSIONS_MAX: Final = 5
"""Versions that a violation names."""


class TrueAnswers(Checker):
    """Compares each answer with the states that its object had meanwhile (linearizability).

    So a write that changes nothing and is acknowledged from a stale cache is found, and so are a conflict
    with a version that was the newest, and an update of an older version, by which a write is lost. A read
    with a resourceVersion may be answered from a cache; it is no `Answer`.
    """

    about = Invariant(
        name="answers-are-true",
        description="An answer to a write, or to a read of the newest state, was true at some moment between "
        "the request and the answer.",
        checks="answers of API servers",
    )
    kinds = None
    takes_answers = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._objects: dict[str, _Object] = {}
        self._newest: dict[AnyKind, list[Revision]] = {}

    def observes(self, kind: AnyKind | None) -> bool:
        """Return whether the writes of a kind are kept: all, if there are answers to compare."""
        return self.settings.observes_answers and kind is not None

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a write."""
        found = self._objects.get(revision.key)
        if found is None:
            found = self._objects[revision.key] = _Object()
        found.revisions.append(revision.revision)
        found.writes.append(revision)
        if revision.kind is not None:
            self._newest.setdefault(revision.kind, []).append(revision)
        yield from ()

    def observe_answer(self, answer: Answer) -> Iterator[Violation]:
        """Compare an answer with the history up to its `end`."""
        self.checked += 1
        if answer.method is Method.LIST:
            if answer.outcome is Outcome.DONE:
                yield from self._check_list(answer)
            return
        found = self._objects.get(answer.kind.key(answer.namespace, answer.name)) or _Object()
        states = found.between(answer.begin, answer.end)
        problem = _problem(answer, states)
        if problem:
            yield self.violation(
                f"{answer.client or 'a client'} was answered {_text(answer)} between the revisions "
                f"{answer.begin} and {answer.end}: {problem}",
                *(state for state in states if state is not None),
                objects=(subject_of(answer.kind, answer.namespace, answer.name),),
            )

    def _check_list(self, answer: Answer) -> Iterator[Violation]:
        writes = self._newest.get(answer.kind, [])
        index = bisect_right(writes, answer.begin, key=lambda write: write.revision)
        version = answer.resource_version
        if version > answer.end:
            problem = "there was no such revision yet"
        elif index and writes[index - 1].revision > version:
            problem = "a later write was there before the request"
        else:
            return
        yield self.violation(
            f"{answer.client or 'a client'} was answered a list of {answer.kind.plural} of resourceVersion "
            f"{version} between the revisions {answer.begin} and {answer.end}: {problem}",
            *writes[index - 1 : index],
        )


class _Object:
    """The writes of one key, in order."""

    __slots__ = ("revisions", "writes")

    def __init__(self) -> None:
        self.revisions: list[int] = []
        self.writes: list[Revision] = []

    def between(self, begin: int, end: int) -> list[Revision | None]:
        """Return the state at one revision, None before the first write, and those up to another."""
        first, last = bisect_right(self.revisions, begin), bisect_right(self.revisions, end)
        state = self.writes[first - 1] if first else None
        return [state, *self.writes[first:last]]


def _exists(state: Revision | None) -> bool:
    return state is not None and state.value is not None


def _problem(answer: Answer, states: list[Revision | None]) -> str:
    """Return why an answer was true in none of the states, the first of which is older; "" if it was."""
    match answer.outcome:
        case Outcome.NOT_FOUND:
            return "" if not all(map(_exists, states)) else "the object existed all the time"
        case Outcome.ALREADY_EXISTS:
            return "" if any(map(_exists, states)) else "the object did not exist"
        case Outcome.CHANGED:
            is_newest = all(
                state is not None and state.revision == answer.resource_version for state in states
            )
            return "it was the newest all the time" if is_newest else ""
        case Outcome.REFUSED:
            return ""
        case Outcome.DONE:
            return _problem_of_done(answer, states)


def _problem_of_done(answer: Answer, states: list[Revision | None]) -> str:
    if answer.uid and not any(_has_uid(state, answer) for state in states):
        bound = f" bound to {answer.node}" if answer.node else ""
        return f"no object of uid {answer.uid} was there{bound}"
    if answer.method is Method.DELETE:
        return "" if any(map(_is_deleted, states)) else "the object exists and is not terminating"
    version = answer.resource_version
    if not version:
        return ""
    is_write = answer.method in (Method.UPDATE, Method.PATCH)
    if is_write and any(state is not None and state.value is None for state in states[1:]):
        return ""  # the write that removes the last finalizer deletes the object
    shown = states[1:] if answer.method is Method.CREATE else states
    for before, state in zip([states[0], *states] if shown is states else states, shown, strict=False):
        if state is not None and state.revision == version and state.value is not None:
            return _problem_of_update(answer, before, state, states)
    versions = sorted({state.revision for state in shown if state is not None})
    had = ", ".join(map(str, versions[:_VERSIONS_MAX])) or "none"
    return f"the object had the versions {had}" if len(versions) != 1 else f"the object had version {had}"


def _problem_of_update(
    answer: Answer, before: Revision | None, written: Revision, states: Sequence[Revision | None]
) -> str:
    """Return whether an update replaced another version than the one that it was made from.

    Where etcd's answer was lost, the bytes in etcd show whether it was applied: another client may have
    changed the object and put it back meanwhile.
    """
    expected = answer.expected_version
    if not expected or expected == written.revision or before is None or before.revision == expected:
        return ""
    for old, new in pairwise(states):
        is_own = old is not None and new is not None and old.revision == expected
        if is_own and _bytes(new) == _bytes(written):
            return ""
    return f"it was made from version {expected}, and replaced version {before.revision}"


def _bytes(state: Revision | None) -> bytes:
    return b"" if state is None or state.value is None else state.value.data


def _is_deleted(state: Revision | None) -> bool:
    """Return whether the object does not exist, or is terminating."""
    obj = None if state is None else state.object
    return obj is None or metadata_of(obj).HasField("deletionTimestamp")


def _has_uid(state: Revision | None, answer: Answer) -> bool:
    """Return whether a state is of the object that a request named by its uid, on the node of a binding."""
    obj = None if state is None else state.object
    if obj is None or metadata_of(obj).uid != answer.uid:
        return False
    return not answer.node or (isinstance(obj, core.Pod) and obj.spec.nodeName == answer.node)


def _text(answer: Answer) -> str:
    version = f" (resourceVersion {answer.resource_version})" if answer.resource_version else ""
    return f"{answer.outcome.value!r}{version} to a {answer.method.value}"
