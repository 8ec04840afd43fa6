"""Parts of a command that run in a process of their own.

Each starts a cluster and then uses gRPC; a process that has used gRPC must not fork the next one's.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import IO

from nominee.localcluster.ending import end, kill
from nominee.localcluster.supervisor.children import before_exec

_STOP_SECONDS_MAX = 60.0


def run_module(module: str, arguments: Sequence[str], stdout: IO[str] | None = None) -> int:
    """Run a Python module in a process, and return its exit code; Ctrl-C lets it stop its cluster."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        text=True,
        process_group=0,
        preexec_fn=before_exec(),
    )
    try:
        return process.wait()
    except KeyboardInterrupt:
        end([process], _STOP_SECONDS_MAX)
        raise
    finally:
        kill(process)
