"""Report how many recorded cases of each family passed, at the end of a run that plays them."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import pytest

_GOLDEN: Final = ("test_golden", "test_event_handlers")
_CASE: Final = re.compile(r"::\w+\[(?P<family>[\w.]+(?:-\w+)??)(?:[-/].*)?\]$")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line a family; only where something failed or the run is verbose, one line for all else."""
    counts: dict[str, Counter[str]] = {}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, ()):
            nodeid = getattr(report, "nodeid", "")
            case = _CASE.search(nodeid)
            if case is None or not any(name in nodeid for name in _GOLDEN):
                continue
            file = nodeid.partition("::")[0].removeprefix("tests/").removesuffix(".py")
            counts.setdefault(f"{file} {case['family']}", Counter())[outcome] += 1
    if not counts:
        return
    terminalreporter.section("recorded cases by family")
    for family, found in sorted(counts.items()):
        if terminalreporter.verbosity > 0 or set(found) != {"passed"}:
            summary = ", ".join(f"{number} {outcome}" for outcome, number in found.items())
            terminalreporter.write_line(f"{family}: {summary}")
    total: Counter[str] = sum(counts.values(), Counter())
    summary = ", ".join(f"{number} {outcome}" for outcome, number in total.items())
    terminalreporter.write_line(f"{len(counts)} families: {summary}")
