"""Which tests one worker of a parallel run has: those of a file, and those that share a running cluster.

It takes the place of `--dist loadfile`, with which the cluster of `tests/apiserver/rest/conftest.py` started
again for each file: these files were seldom neighbours on a worker.
"""

from __future__ import annotations

from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

_SHARING: Final = tuple(f"tests/apiserver/rest/test_{name}" for name in ("client_", "component_", "kubectl"))


class SharingScheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives all tests of the files in `_SHARING` to the same worker."""

    def _split_scope(self, nodeid: str) -> str:
        return _SHARING[0] if nodeid.startswith(_SHARING) else str(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharingScheduling | None:
    return SharingScheduling(config, log) if config.getoption("dist") == "loadfile" else None
