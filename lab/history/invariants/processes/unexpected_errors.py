"""No process meets an error that it has no handler for."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import Evidence


class UnexpectedErrors(Checker):
    """Reads the processes' logs: they log a traceback of an error that they did not foresee, and of no other.

    Such an error often ends one task, which is started again, so that nothing else shows it.
    """

    about = Invariant(
        name="errors-are-handled",
        description="No process logs a traceback, and none of its tasks ends with an error that is not read.",
        checks="logs of processes",
    )

    reads_logs = True

    def finish(self, evidence: Evidence) -> Iterator[Violation]:
        """Yield the errors."""
        self.checked += 1
        for error in evidence.errors or ():
            yield self.violation(error)
