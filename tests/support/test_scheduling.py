"""A parallel run begins with the files that take longest."""

from __future__ import annotations

import pytest

_TESTS = """
import subprocess
import pytest

@pytest.mark.parametrize("number", range(5))
def test_computes(number): pass
"""
_PROCESS_TEST = """
@pytest.mark.processes
def test_starts(): pass
"""
pytest_plugins = ["pytester"]


def test_files_with_process_tests_come_before_files_with_more_tests(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers = processes: starts processes")
    pytester.makepyfile(test_a=_TESTS[:-1], test_b=_TESTS, test_c=_TESTS + _PROCESS_TEST)
    plugins = [f"-ptests.support.{name}" for name in ("processes", "scheduling")]
    pytester.makeconftest("def pytest_configure(config): config.workerinput = {}")  # as in a worker of xdist
    result = pytester.runpytest_inprocess(
        "-p", "no:asyncio", "-p", "no:xdist", "-p", "no:cacheprovider", "--collect-only", "-q", *plugins
    )
    files = [line.partition("::")[0] for line in result.outlines if "::" in line]
    assert list(dict.fromkeys(files)) == ["test_c.py", "test_a.py", "test_b.py"]
    assert len(files) == 16
