"""A cluster that belongs to a command: started by it, and ended with it.

Benchmarks, studies, scenarios and explorations start theirs here.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nominee.localcluster.cluster import ClusterError, RunningCluster
from nominee.localcluster.ending import end
from nominee.localcluster.supervisor.clock import wait_until
from nominee.localcluster.supervisor.directory import StateDirectory
from nominee.machinery.process import child

_READY_SECONDS_MAX = 60.0
_ANSWER_SECONDS_MAX = 3600.0
"""The supervisor gives up before: after its own --timeout."""
STOP_SECONDS = 10.0
"""How long the processes may take to stop in order, and then to be gone once they are killed."""
_LOG = "up"
_TAIL_LINES = 20


class ClusterStartError(RuntimeError):
    """The cluster did not start; the message is the end of `nominee up`'s output."""


@contextmanager
def cluster(
    directory: Path, up_options: Sequence[str], components: str = "etcd,apiserver,scheduler"
) -> Iterator[RunningCluster]:
    """Run a cluster (`nominee up`) in a directory until the block ends; yield when it is ready.

    It has these options only, whatever the directory was used with before. `components` "" leaves the choice
    to them. What `nominee up` reports is in D/logs/up.log.

    Raises:
        ClusterStartError: the cluster does not start.
    """
    command = [
        *child.command("nominee.cli", "up", "--dir", str(directory), "--no-remember"),
        *(("--components", components) if components else ()),
        *up_options,
    ]
    state, running = StateDirectory(directory), RunningCluster(directory)
    log = state.open_log(_LOG)
    try:
        start = os.fstat(log).st_size
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,  # a file: a pipe that no thread reads would block the supervisor once it is full
            text=True,
            process_group=0,
        )
    finally:
        os.close(log)
    socket = state.run / "supervisor.sock"
    try:
        wait_until(lambda: socket.exists() or process.poll() is not None, _READY_SECONDS_MAX)
        try:
            running.wait_until_ready(_ANSWER_SECONDS_MAX)
        except ClusterError as error:
            end([process], STOP_SECONDS, signals=2)
            tail = "\n".join(state.log_tail(_LOG, lines=_TAIL_LINES, start=start))
            raise ClusterStartError(tail.strip() or str(error)) from None
        yield running
    finally:
        # As a user does: the second Ctrl-C kills what does not stop.
        end([process], STOP_SECONDS, signals=2)
