"""The markers that tests get from their code and fixtures: `processes`, and `etcd`.

A test gets a marker if its code, or that of a fixture that it uses, reaches a target through functions and
classes of `tests`. Where only the tested code does, the file or the test says so:
`pytestmark = pytest.mark.processes`.

`processes`: the modules that start processes. `make test-fast` runs the tests without it.
`etcd`: an etcd of the test's own, or `nominee up`. `make test-wheel-etcd` runs the tests with it. Those of
components that see etcd only through an API server (`cluster`) are not among them.
"""

from __future__ import annotations

import inspect
import multiprocessing
import re
import subprocess
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Final

import pytest

PROCESSES: Final = "processes"
ETCD: Final = "etcd"
_MODULES: Final = (subprocess, multiprocessing)
_LONGEST: Final = (
    "nominee/test_package.py",
    "localcluster/test_cluster.py",
    "autoscaler/e2e/test_autoscaler.py",
    "nominee/test_terminal.py",
)
"""The files that take longest, which begin first. A file's tests stay in one process."""
_UP: Final = re.compile(r" ?up( -|$)")


def _starts_processes(thing: object) -> bool:
    return any(thing is each or getattr(thing, "__module__", "") == each.__name__ for each in _MODULES)


def _starts_etcd(thing: object) -> bool:
    """Return whether it is the class of an etcd of tests, or the words of `nominee up`."""
    if isinstance(thing, tuple | list):
        return any(map(_starts_etcd, thing))
    if isinstance(thing, str):
        return _UP.match(thing) is not None
    where = getattr(thing, "__module__", "")
    return isinstance(thing, type) and where in ("tests.support.etcd", "tests.support.etcd_trio")


class Reach:
    """Answers whether code reaches a target, through the global names and the texts that it uses."""

    def __init__(self, is_target: Callable[[object], bool]) -> None:
        self._is_target = is_target
        self._known: dict[object, bool] = {}

    def reaches(self, thing: object) -> bool:
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
            if self._is_target(used):
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
    """Yield the global objects and the texts that a function uses, or the functions and bases of a class."""
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
            yield from (each for each in code.co_consts if isinstance(each, str | tuple))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code, and that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add the markers; let files with processes begin first, so that none is alone at the end."""
    processes, etcd = Reach(_starts_processes), Reach(_starts_etcd)
    for item in items:
        functions = list(_functions(item)) if isinstance(item, pytest.Function) else []
        if any(map(processes.reaches, functions)):
            item.add_marker(PROCESSES)
            # Without a process, "up" is another word: the direction of a scaling.
            if any(map(etcd.reaches, functions)):
                item.add_marker(ETCD)
    late = {item.path for item in items} - {item.path for item in items if item.get_closest_marker(PROCESSES)}
    items.sort(key=lambda item: (not item.path.as_posix().endswith(_LONGEST), item.path in late))


def _functions(item: pytest.Function) -> Iterator[object]:
    """Yield the function of a test, and those of its fixtures."""
    function = inspect.unwrap(item.function)
    yield getattr(getattr(function, "hypothesis", None), "inner_test", function)
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        yield inspect.unwrap(definitions[-1].func)
