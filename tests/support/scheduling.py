"""Which tests one worker of a parallel run has: those of a file, and those that share a running cluster.

It takes the place of `--dist loadfile`, with which the cluster of `tests/apiserver/rest/conftest.py` started
again for each file: these files were seldom neighbours on a worker. The files that take longest come first,
so that no worker has a long one when the others have ended. xdist's own order is by the number of tests,
which puts the files with a few long tests last.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.support.markers import PROCESSES

_SHARING: Final = tuple(f"tests/apiserver/rest/test_{name}" for name in ("client_", "component_", "kubectl"))
_PROCESS_TEST_WEIGHT: Final = 100
"""How many other tests take as long as one that starts processes, roughly."""


class SharingScheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives all tests of the files in `_SHARING` to the same worker."""

    def _split_scope(self, nodeid: str) -> str:
        return _scope(nodeid)


def _scope(nodeid: str) -> str:
    return _SHARING[0] if nodeid.startswith(_SHARING) else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharingScheduling | None:
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # keep the order of `pytest_collection_modifyitems`
    return SharingScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items[:] = longest_first(items)


def longest_first(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests in the order of the seconds that the tests of their file, or group, may take."""
    weights: dict[str, int] = defaultdict(int)
    for item in items:
        is_process_test = item.get_closest_marker(PROCESSES) is not None
        weights[_scope(item.nodeid)] += _PROCESS_TEST_WEIGHT if is_process_test else 1
    return sorted(items, key=lambda item: -weights[_scope(item.nodeid)])
