"""One running cluster for all sessions of clients: kubectl, and four Python clients."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.eventually import eventually_sync
from tests.support.patience import PATIENCE_SECONDS

_REPOSITORY = Path(__file__).resolve().parents[3]


def _nominee(*words: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("nominee")), *words]
    return subprocess.run(
        command, cwd=_REPOSITORY, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )


def _pid(directory: Path) -> int:
    try:
        return int(json.loads((directory / "run" / "apiserver.json").read_text())["pid"])
    except (OSError, ValueError, KeyError):
        return 0


@pytest.fixture(scope="module")
def litter() -> Iterator[None]:
    """For clients that leave connections to the garbage collector: it comes before the module ends.

    Such a module ignores what the collector says of them, and no later test is blamed for it.
    """
    yield
    gc.collect()


@pytest.fixture(scope="package", autouse=True)
def _files_of_clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The Python clients write certificates and discovery caches to the temporary folder, and leave them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("clients")))
        yield


@pytest.fixture(scope="package")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a running cluster of two nodes.

    Its API server has been killed once: it serves at the same address again, and what was before is too old
    to be watched.
    """
    directory = tmp_path_factory.mktemp("live") / "cluster"
    started = _nominee(
        "up", "--dir", str(directory), "--nodes", "2", "--detach", "--timeout", f"{PATIENCE_SECONDS:g}"
    )
    assert started.returncode == 0, started.stderr
    killed = _pid(directory)
    os.kill(killed, signal.SIGKILL)
    eventually_sync(lambda: _pid(directory), lambda pid: pid not in (0, killed))
    yield directory
    _nominee("down", "--dir", str(directory))
    shutil.rmtree(directory / "etcd", ignore_errors=True)
