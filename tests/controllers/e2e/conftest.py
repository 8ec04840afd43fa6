"""A cluster for the observations of Jobs and CronJobs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.rest.test_kubectl import Session
from tests.support.patience import PATIENCE_SECONDS


def _nominee(*words: str) -> None:
    command = [str(Path(sys.executable).with_name("nominee")), *words]
    subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)


@pytest.fixture(scope="package")
def batch_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Yield a session of kubectl with a running cluster of two nodes."""
    directory = tmp_path_factory.mktemp("batch") / "cluster"
    _nominee(
        "up", "--dir", str(directory), "--nodes", "2", "--detach", "--timeout", f"{PATIENCE_SECONDS:g}",
        "--components", "etcd,apiserver,scheduler,kubelet,controllers",
    )  # fmt: skip
    yield Session(directory)
    _nominee("down", "--dir", str(directory))
    shutil.rmtree(directory / "etcd", ignore_errors=True)
