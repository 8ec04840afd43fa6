"""A test without the marker `processes` (tests/support/markers.py) fails if it starts a process."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import pytest

from tests.support.markers import PROCESSES

_EVENTS: Final = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.exec", "os.system"}
)


@dataclass
class ProcessGuard:
    """Refuses to start a process while a test without the marker runs."""

    guards: bool = False
    started: list[str] = field(default_factory=list)

    def audit(self, event: str, arguments: tuple[object, ...]) -> None:
        """Raise RuntimeError at an audit event that starts a process."""
        if self.guards and event in _EVENTS:
            self.started.append(f"{event} {arguments[:2]}")
            raise RuntimeError(f"a test without the marker {PROCESSES} starts a process: {event}")

    @contextmanager
    def on(self, guards: bool) -> Iterator[list[str]]:
        """Guard, or not, inside the block; yield the list of what was refused there."""
        before = self.guards, self.started
        self.guards, self.started = guards, []
        try:
            yield self.started
        finally:
            self.guards, self.started = before


GUARD: Final = ProcessGuard()
sys.addaudithook(GUARD.audit)  # which cannot be removed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with GUARD.on(item.get_closest_marker(PROCESSES) is None):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    with GUARD.on(GUARD.guards) as started:
        result = yield
    if started:  # and the error was caught
        pytest.fail(f"starts a process without the marker {PROCESSES}: {', '.join(started)}")
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    # A fixture that ends here may be one of other tests of the file, or of the session.
    with GUARD.on(False):
        return (yield)
