"""Which tests start processes: they get the marker `processes`; a test without it fails if it starts one.

`make test-fast` runs the tests without the marker. A test gets it if its code, or that of a fixture that it
uses, reaches the module subprocess through functions and classes of `tests`. Where only the tested code
starts processes, the file or the test says so: `pytestmark = pytest.mark.processes`.
"""

from __future__ import annotations

import inspect
import multiprocessing
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Final

import pytest

MARKER: Final = "processes"
_MODULES: Final = (subprocess, multiprocessing)
_EVENTS: Final = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.exec", "os.system"}
)


class Reach:
    """Answers whether code reaches a module that starts processes, through the global names that it uses."""

    def __init__(self) -> None:
        self._known: dict[object, bool] = {}

    def starts_processes(self, thing: object) -> bool:
        """Return whether a function of the tests does, by functions and classes of the tests."""
        if thing not in self._known:
            seen = {thing}
            self._known[thing] = self._leads_there(thing, seen)
            if not self._known[thing]:
                self._known.update(dict.fromkeys(seen, False))
        return self._known[thing]

    def _leads_there(self, thing: object, seen: set[object]) -> bool:
        here = getattr(thing, "__module__", "")
        for used in _used_by(thing):
            if any(used is each or getattr(used, "__module__", "") == each.__name__ for each in _MODULES):
                return True
            if not isinstance(used, FunctionType | type) or not used.__module__.startswith(("tests.", here)):
                continue
            if self._known.get(used) or (used not in seen and self._enter(used, seen)):
                return True
        return False

    def _enter(self, used: object, seen: set[object]) -> bool:
        seen.add(used)
        return self._known.get(used, True) and self._leads_there(used, seen)


def _used_by(thing: object) -> Iterator[object]:
    """Yield the global objects that a function uses, or the functions and bases of a class."""
    if isinstance(thing, type):
        yield from thing.__bases__
        for each in vars(thing).values():
            function = getattr(each, "fget", None) or getattr(each, "__func__", each)
            if isinstance(function, FunctionType):
                yield from _used_by(function)
    elif isinstance(thing, FunctionType):
        inner = inspect.unwrap(thing)
        for code in _codes(inner.__code__):
            for name in code.co_names:
                if name in inner.__globals__:
                    yield inner.__globals__[name]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code, and that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


@dataclass
class ProcessGuard:
    """Refuses to start a process while a test without the marker runs."""

    guards: bool = False
    started: list[str] = field(default_factory=list)

    def audit(self, event: str, arguments: tuple[object, ...]) -> None:
        """Raise RuntimeError at an audit event that starts a process."""
        if self.guards and event in _EVENTS:
            self.started.append(f"{event} {arguments[:2]}")
            raise RuntimeError(f"a test without the marker {MARKER} starts a process: {event}")

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


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reach = Reach()
    for item in items:
        if isinstance(item, pytest.Function) and any(map(reach.starts_processes, _functions(item))):
            item.add_marker(MARKER)


def _functions(item: pytest.Function) -> Iterator[object]:
    """Yield the function of a test, and those of its fixtures."""
    function = inspect.unwrap(item.function)
    yield getattr(getattr(function, "hypothesis", None), "inner_test", function)
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        yield inspect.unwrap(definitions[-1].func)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with GUARD.on(item.get_closest_marker(MARKER) is None):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    with GUARD.on(GUARD.guards) as started:
        result = yield
    if started:  # and the error was caught
        pytest.fail(f"starts a process without the marker {MARKER}: {', '.join(started)}")
    return result
