"""A list has all objects of its revision, and a watch shows every write."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.checking.reads import Change, Read, Resumption, Selection, State
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import AnyKind

_NAMED_MAX: Final = 5


class WholeReads(Checker):
    """Compares lists and events with the history: caches, indexes and positions of watches.

    Whether a list is new enough is the subject of `answers-are-true`; one from a cache may be old, and has
    nevertheless all objects of its revision. A watch shows each write to a selected object, in order; a
    bookmark says that there is no other one up to it. A client goes on where it was, or earlier.
    """

    about = Invariant(
        name="reads-are-whole",
        description="A list has exactly the objects of its resourceVersion, a watch shows every write after "
        "its beginning, and a client resumes no watch later than what it was shown.",
        checks="lists, and events of watches, of the components",
    )
    kinds = None
    takes_answers = True

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._writes: dict[AnyKind, _Writes] = {}

    def observes(self, kind: AnyKind | None) -> bool:
        """Return whether the writes of a kind are kept: all, if there are reads to compare."""
        return self.settings.observes_answers and kind is not None

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note a write."""
        if revision.kind is not None:
            self._writes.setdefault(revision.kind, _Writes()).add(revision)
        yield from ()

    def observe_read(self, read: Read) -> Iterator[Violation]:
        """Compare a read with the history."""
        self.checked += 1
        writes = self._writes.get(read.selection.kind) or _Writes()
        match read:
            case State():
                problem, shown_by = writes.problem_of_state(read)
            case Change():
                problem, shown_by = writes.problem_of_change(read)
            case Resumption():
                problem, shown_by = "", ()
                if read.revision > read.newest:
                    problem = f"watches from revision {read.revision} on, and was shown {read.newest} at most"
        if problem:
            kind = read.selection.kind.plural
            yield self.violation(f"{read.client or 'a client'}, {kind}: {problem}", *shown_by)


class _Writes:
    """The writes of one kind, in order."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._writes: list[Revision] = []
        self._by_key: dict[str, list[Revision]] = {}

    def add(self, revision: Revision) -> None:
        self._numbers.append(revision.revision)
        self._writes.append(revision)
        self._by_key.setdefault(revision.key, []).append(revision)

    def problem_of_state(self, read: State) -> tuple[str, Sequence[Revision]]:
        """Return the difference of a list from the state of its revision, and the writes that show it."""
        expected = {write.revision: write for write in self._at(read.selection, read.revision)}
        more = sorted(read.versions - expected.keys())
        if more:
            versions = ", ".join(map(str, more[:_NAMED_MAX]))
            return f"a list of resourceVersion {read.revision} has objects of other versions: {versions}", ()
        lacking = [expected[each] for each in sorted(expected.keys() - read.versions)]
        if lacking and read.is_whole:
            return f"a list of resourceVersion {read.revision} lacks {_names(lacking)}", lacking
        return "", ()

    def _at(self, selection: Selection, number: int) -> Iterator[Revision]:
        """Yield the last write of each selected object that existed at a revision."""
        for writes in self._by_key.values():
            index = bisect_right(writes, number, key=lambda write: write.revision)
            if index and selection.has(writes[index - 1], writes[index - 1].object):
                yield writes[index - 1]

    def problem_of_change(self, read: Change) -> tuple[str, Sequence[Revision]]:
        """Return the writes that a watch has not shown before an event, or why there is no such event."""
        if read.revision < read.after:
            return f"an event of revision {read.revision} follows one of {read.after}", ()
        first = bisect_right(self._numbers, read.after)
        is_bookmark = read.removed is None
        last = (bisect_right if is_bookmark else bisect_left)(self._numbers, read.revision)
        skipped = [write for write in self._writes[first:last] if _is_visible(read.selection, write)]
        if skipped:
            text = f"a watch that had come to {read.after} goes on with {read.revision} without"
            return f"{text} {_names(skipped)}", skipped
        if is_bookmark:
            return "", ()
        own = self._writes[
            bisect_left(self._numbers, read.revision) : bisect_right(self._numbers, read.revision)
        ]
        fitting = [
            write
            for write in own
            if _is_visible(read.selection, write)
            and read.removed is not read.selection.has(write, write.object)
        ]
        if not fitting:
            what = "removal" if read.removed else "write"
            return f"an event is a {what} of revision {read.revision}, which the history does not have", own
        return "", ()


def _is_visible(selection: Selection, write: Revision) -> bool:
    return selection.has(write, write.previous) or selection.has(write, write.object)


def _names(writes: Sequence[Revision]) -> str:
    names = [f"{write.subject} of revision {write.revision}" for write in writes[:_NAMED_MAX]]
    return ", ".join(names)
