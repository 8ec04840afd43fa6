"""Clusters for the observations through kubectl, at the version whose controllers they describe."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.apiserver.rest.test_kubectl import Session
from tests.support.patience import PATIENCE_SECONDS

VERSION = "1.36"


def _nominee(*words: str) -> None:
    command = [str(Path(sys.executable).with_name("nominee")), *words]
    subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)


@contextmanager
def observed(directory: Path, *words: str, nodes: int = 2) -> Iterator[Session]:
    """Run a cluster of kube-controller-manager's version; yield a session of kubectl. `words` are of `up`."""
    _nominee(
        "up", "--dir", str(directory), "--nodes", str(nodes), "--detach", "--emulated-version", VERSION,
        "--components", "etcd,apiserver,scheduler,kubelet,controllers",
        "--timeout", f"{PATIENCE_SECONDS:g}", *words,
    )  # fmt: skip
    try:
        yield Session(directory)
    finally:
        _nominee("down", "--dir", str(directory))
        shutil.rmtree(directory / "etcd", ignore_errors=True)
