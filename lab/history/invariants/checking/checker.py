"""The protocol of a checker: it observes revisions in order, and yields the violations that it finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from nominee.lab.history.invariants.checking.answers import Answer
from nominee.lab.history.invariants.checking.cloud_calls import CloudCall
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.checking.reads import Read
from nominee.lab.history.invariants.checking.served_time import ServedTime
from nominee.lab.history.revision import Revision
from nominee.lab.reports.records import Record
from nominee.machinery.api.kinds import AnyKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation(Record):
    """A history that an invariant does not allow, and the writes and objects that show it."""

    invariant: str
    message: str
    revisions: tuple[int, ...]
    objects: tuple[str, ...]
    shown_by: tuple[Revision, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """The text of an invariant, for reports and docs.

    `description` is one sentence: what holds. `checks` is what the checker counts as checked ("writes of
    pods"). `exceptions` are allowed nevertheless, `counts` are reported and no violation: a sentence by name.
    """

    name: str
    description: str
    checks: str
    exceptions: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, str] = field(default_factory=dict)


class Checker:
    """One invariant. Subclasses override `observe`, `finish` or both.

    A checker is used for one history. It must not change the objects that it reads, and it keeps no more
    than it needs of those that exist now.
    """

    about: ClassVar[Invariant]
    kinds: ClassVar[frozenset[AnyKind] | None] = frozenset()
    """The kinds whose revisions `observe` gets; None: all keys, and the checker decodes nothing."""
    takes_answers: ClassVar[bool] = False
    """Whether `observe_answer`, `observe_read` and `observe_cloud` are called."""
    needs_answers: ClassVar[bool] = True
    """Whether a checker that takes answers has no verdict without them."""
    reads_logs: ClassVar[bool] = False
    """Whether `finish` needs the errors in the processes' logs."""
    reads_settings: ClassVar[bool] = False
    """Whether the verdict depends on the settings, which are known when the history ends."""

    reads_scale_down: ClassVar[bool] = False
    """Whether it needs the autoscaler's options."""

    def __init__(self, settings: ComponentSettings) -> None:
        self.settings = settings
        self.served_time = ServedTime()
        """That of all checkers of a history, once it is observed."""
        self.checked = 0
        """How many cases were checked (`about.checks`)."""
        self.excepted: Counter[str] = Counter()
        self.counted: Counter[str] = Counter()

    def unchecked(self, evidence: Evidence) -> str:
        """Return why this history cannot be checked, or ""."""
        if self.takes_answers and self.needs_answers and not self.settings.observes_answers:
            return "the answers of the API servers were not observed"
        if self.reads_scale_down and self.settings.scale_down is None:
            return "the options of an autoscaler are not known"
        if self.reads_logs and evidence.errors is None:
            return "the logs of the processes are not read"
        return ""

    def observes(self, kind: AnyKind | None) -> bool:
        """Return whether `observe` needs the revisions of a kind."""
        return self.kinds is None or kind in self.kinds

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Yield the violations that a revision shows."""
        yield from ()

    def observe_answer(self, answer: Answer) -> Iterator[Violation]:
        """Yield the violations that an answer of an API server shows; `observe` has come to its `end`."""
        yield from ()

    def observe_read(self, read: Read) -> Iterator[Violation]:
        """Yield the violations that a list or an event of a watch shows; `observe` has come to it."""
        yield from ()

    def observe_cloud(self, call: CloudCall) -> Iterator[Violation]:
        """Yield the violations that a call to the cloud shows, in the order of the answers."""
        yield from ()

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Yield the violations that the end of the history shows.

        Only the counters change: `observe` may be called again, and so may this.
        """
        yield from ()

    def violation(self, message: str, *shown_by: Revision, objects: tuple[str, ...] = ()) -> Violation:
        """Return a violation; its objects are those of the revisions, and `objects`."""
        return Violation(
            invariant=self.about.name,
            message=message,
            revisions=tuple(sorted({revision.revision for revision in shown_by})),
            objects=tuple(dict.fromkeys([*(revision.subject for revision in shown_by), *objects])),
            shown_by=tuple(sorted(dict.fromkeys(shown_by), key=lambda revision: revision.revision)),
        )

    def allow(self, exception: str) -> None:
        """Count a use of an exception.

        Raises:
            KeyError: the class does not name it.
        """
        self.about.exceptions[exception]
        self.excepted[exception] += 1

    def count(self, what: str, number: int = 1) -> None:
        """Count something that is no violation.

        Raises:
            KeyError: the class does not name it.
        """
        self.about.counts[what]
        if number:
            self.counted[what] += number
