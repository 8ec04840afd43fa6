"""A listed difference from a recording is shown, must be a difference, and must name a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import golden_differences

pytest_plugins = ["pytester"]
TESTS = """
import pytest

@pytest.mark.parametrize("case", ["same", "other"])
def test_case(case):
    assert case == "same"
"""


@pytest.fixture
def listed(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    pytester.makepyfile(test_one=TESTS)
    monkeypatch.setattr(golden_differences, "FILE", Path(pytester.path, "golden_differences.toml"))
    return pytester


def run(pytester: pytest.Pytester, entry: str) -> pytest.RunResult:
    golden_differences.FILE.write_text(f"[tests]\n{entry}\n[plugins]\n", encoding="utf-8")
    return pytester.runpytest_inprocess("-ra", "-p", "no:asyncio", "-p", "tests.support.golden_differences")


def test_a_listed_difference_is_shown(listed: pytest.Pytester) -> None:
    result = run(listed, '"test_one.py::test_case[other]" = "the KEP says so"')
    result.assert_outcomes(passed=1, xfailed=1)
    result.stdout.fnmatch_lines(["XFAIL*other*the KEP says so"])


def test_an_entry_that_does_not_differ_fails(listed: pytest.Pytester) -> None:
    run(listed, '"test_one.py::test_case[same]" = "the KEP says so"').assert_outcomes(failed=2)


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ('"test_one.py::test_case[third]" = "x"', "no such test: test_one.py::test_case?third?"),
        ('"test_one.py::test_case[other]" = " "', "give the reason"),
    ],
)
def test_a_wrong_entry_is_an_error(listed: pytest.Pytester, entry: str, error: str) -> None:
    result = run(listed, entry)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*golden_differences.toml: *{error}*"])
