"""Tests get markers from their code; a test without `processes` that starts a process fails."""

from __future__ import annotations

import pytest

from tests.support import markers, processes

pytest_plugins = ["pytester"]
_TESTS = """
import subprocess
import sys
from contextlib import suppress
import pytest

def start():
    return [subprocess.run([sys.executable, "-c", ""], check=True) for _ in range(1)]

def one(): return other() or start()
def other(): return one()

class Component:
    @property
    def started(self):
        return start()

@pytest.fixture
def component():
    return Component().started

def test_by_a_function(): start()
def test_by_a_circle():
    with pytest.raises(RecursionError):
        one()
def test_by_the_other_way_into_the_circle():
    with pytest.raises(RecursionError):
        other()
def test_by_a_class(): Component().started
def test_by_a_fixture(component): pass
@pytest.mark.processes
def test_by_the_tested_code(): eval("start()")
def test_of_up(component): [start() for _ in ("up", "--detach")]
def test_none(direction="up"): pass
def test_unmarked(): eval("start()")
def test_unmarked_and_caught():
    with suppress(RuntimeError):
        eval("start()")
"""
_MARKED = [
    "test_by_a_function",
    "test_by_a_circle",
    "test_by_the_other_way_into_the_circle",
    "test_by_a_class",
    "test_by_a_fixture",
    "test_by_the_tested_code",
    "test_of_up",
]
_OTHERS = ["test_none", "test_unmarked", "test_unmarked_and_caught"]


def _run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    pytester.makeini("[pytest]\nmarkers =\n processes: starts processes\n etcd: starts etcd")
    pytester.makepyfile(_TESTS)
    plugin = ["-p", "no:asyncio", "-p", "no:cacheprovider", "-p", markers.__name__, "-p", processes.__name__]
    with processes.GUARD.on(False):  # these start processes
        return pytester.runpytest_inprocess("-v", *plugin, *words)


def test_tests_that_start_processes_get_the_marker(pytester: pytest.Pytester) -> None:
    result = _run(pytester, "-m", "processes")
    result.assert_outcomes(passed=len(_MARKED), deselected=len(_OTHERS))
    result.stdout.fnmatch_lines([f"*::{name} PASSED*" for name in _MARKED])


def test_tests_that_run_up_get_the_marker_of_etcd(pytester: pytest.Pytester) -> None:
    result = _run(pytester, "-m", "etcd")
    result.assert_outcomes(passed=1, deselected=len(_MARKED) + len(_OTHERS) - 1)
    result.stdout.fnmatch_lines(["*::test_of_up PASSED*"])


def test_a_test_without_the_marker_fails_if_it_starts_a_process(pytester: pytest.Pytester) -> None:
    result = _run(pytester, "-m", "not processes")
    result.assert_outcomes(passed=1, failed=2, deselected=len(_MARKED))
    result.stdout.fnmatch_lines(["*::test_none PASSED*", "*::test_unmarked FAILED*"])
    result.stdout.fnmatch_lines(["*::test_unmarked_and_caught FAILED*", "*Failed: starts a process without*"])
