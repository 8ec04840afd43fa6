"""Mark the tests that must differ from a recording: tests/golden_differences.toml, with a reason for each.

A listed test runs and is expected to fail (`xfail`, strict), and pytest's summary shows its reason.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "golden_differences.toml"


def read(table: str) -> Mapping[str, str]:
    """Return the reasons of a table, `tests` or `plugins`, by name.

    Raises:
        pytest.UsageError: an entry has no reason.
    """
    entries = tomllib.loads(FILE.read_text(encoding="utf-8"))[table]
    for name, reason in entries.items():
        if not isinstance(reason, str) or not reason.strip():
            raise pytest.UsageError(f"{FILE.name}: {name}: give the reason, as text")
    return dict(entries)


def missing(entries: Collection[str], collected: Collection[str]) -> list[str]:
    """Return the entries that name no test, where the test's file is collected."""
    files = {name.partition("::")[0] for name in collected}
    return [each for each in entries if each.partition("::")[0] in files and each not in collected]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Expect the listed tests to fail. Raises: pytest.UsageError for an entry that names no test."""
    entries = read("tests")
    for item in items:
        if item.nodeid in entries:
            item.add_marker(pytest.mark.xfail(reason=entries[item.nodeid], strict=True))
    if not any("::" in argument for argument in config.args):
        unknown = missing(entries, {item.nodeid for item in items})
        if unknown:
            raise pytest.UsageError(f"{FILE.name}: no such test: {', '.join(unknown)}")
