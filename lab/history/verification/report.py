"""The report of a verification, as lines for a person or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from nominee.lab.history.changes import describe
from nominee.lab.history.etcd_observer import Coverage
from nominee.lab.history.invariants.check import Result
from nominee.lab.history.invariants.checking.checker import Violation
from nominee.lab.history.invariants.table import CHECKERS
from nominee.lab.history.verification.reading import History
from nominee.lab.history.verification.verification import Verification
from nominee.machinery.printing.tables import table

VIOLATIONS_MAX: Final = 10
"""Violations of one invariant that are printed."""
_OBJECTS_MAX: Final = 6


def lines(verification: Verification) -> Iterator[str]:
    """Yield the report: a table of the invariants, then each violation with the writes that show it."""
    rows = [_row(result) for result in verification.results]
    yield from table(["INVARIANT", "CHECKED", "VIOLATIONS", "EXCEPTIONS USED", "COUNTED"], rows)
    yield ""
    yield from coverage_lines(verification.history)
    for result in verification.results:
        if result.unchecked:
            yield f"{result.invariant} was not checked: {result.unchecked}"
    for result in verification.results:
        for violation in result.violations[:VIOLATIONS_MAX]:
            yield ""
            yield from violation_lines(violation)
        more = len(result.violations[VIOLATIONS_MAX:]) + result.more_violations
        if more:
            yield f"... {more} more violations of {result.invariant}"


def _row(result: Result) -> list[str]:
    return [
        result.invariant,
        str(result.checked) if not result.unchecked else "-",
        str(len(result.violations) + result.more_violations) if not result.unchecked else "unchecked",
        _counts(result.exceptions),
        _counts(result.counts),
    ]


def _counts(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(numbers.items())) or "-"


def coverage_lines(history: History) -> Iterator[str]:
    """Yield the checked part of the cluster's history."""
    coverage = history.coverage
    yield f"{history.revisions} writes were checked, up to revision {coverage.end}"
    if coverage.is_complete and not history.missing_rest:
        if history.is_of_etcd:
            yield "the history is complete: it has every write since the cluster was created"
        else:
            yield "the history file has every write up to there; no etcd runs that could have later ones"
    yield from missing_lines(history)


def missing_lines(history: History) -> Iterator[str]:
    """Yield the parts of the cluster's history that are missing."""
    coverage = history.coverage
    if coverage.begin:
        yield (
            f"the history begins with the state at revision {coverage.begin}: the writes before were "
            "compacted (`nominee up --history` keeps them)"
        )
    for first, last in coverage.gaps:
        yield f"revisions {first} to {last} are missing: they were compacted before they were recorded"
    if history.missing_rest:
        yield f"{history.missing_rest}; later writes are missing, and no etcd runs that has them"


def violation_lines(violation: Violation) -> Iterator[str]:
    """Yield a violation, its objects, and the writes that show it."""
    yield f"{violation.invariant}: {violation.message}"
    named = violation.objects[:_OBJECTS_MAX]
    more = len(violation.objects) - len(named)
    yield f"  objects: {', '.join(named)}" + (f" and {more} more" if more else "")
    for revision in violation.shown_by:
        first, *rest = describe(revision)
        yield f"  {first}"
        for line in rest:
            yield f"      {line}"


def as_json(verification: Verification) -> dict[str, object]:
    """Return the report as a JSON object."""
    history = verification.history
    return {
        "holds": verification.holds,
        "revisions": history.revisions,
        "history": _coverage_json(history.coverage, is_truncated=bool(history.missing_rest)),
        "invariants": [result.as_json() for result in verification.results],
    }


def _coverage_json(coverage: Coverage, *, is_truncated: bool) -> dict[str, object]:
    return {
        "complete": coverage.is_complete and not is_truncated,
        "begin": coverage.begin,
        "end": coverage.end,
        "gaps": [{"first": first, "last": last} for first, last in coverage.gaps],
        "truncated": is_truncated,
    }


def list_lines() -> Iterator[str]:
    """Yield every invariant with its exceptions and counts."""
    for checker in CHECKERS:
        about = checker.about
        yield about.name
        yield f"  {about.description}"
        for name, sentence in about.exceptions.items():
            yield f"  exception {name}: {sentence}"
        for name, sentence in about.counts.items():
            yield f"  counts {name}: {sentence}"


def list_json() -> list[dict[str, object]]:
    """Return every invariant as JSON."""
    return [
        {
            "name": checker.about.name,
            "description": checker.about.description,
            "checks": checker.about.checks,
            "exceptions": dict(checker.about.exceptions),
            "counts": dict(checker.about.counts),
        }
        for checker in CHECKERS
    ]
