"""A cluster that belongs to a command: started by it, and ended with it.

Benchmarks, studies, scenarios and explorations start theirs here, before they run gRPC in an event loop: a
process that has used gRPC must not fork.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from nominee.supervisor.children import before_exec
from nominee.supervisor.client import NotRunningError, RefusedError, call
from nominee.supervisor.clock import wait_until
from nominee.supervisor.directory import StateDirectory

_READY_SECONDS_MAX = 60.0
_STOP_SECONDS_MAX = 30.0


class ClusterStartError(RuntimeError):
    """The cluster did not start; the message is the output of `nominee up`."""


@contextmanager
def cluster(
    directory: Path, up_options: Sequence[str], components: str = "etcd,apiserver,scheduler"
) -> Iterator[None]:
    """Run a cluster (`nominee up`) in a directory until the block ends; yield when it is ready.

    `components` "" leaves the choice to the other options.

    Raises:
        ClusterStartError: the cluster does not start; the message is its output.
    """
    command = [
        *(sys.executable, "-P", "-m", "nominee.cli", "up", "--dir", str(directory)),
        *(("--components", components) if components else ()),
        *up_options,
    ]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        preexec_fn=before_exec(),
    )
    socket = StateDirectory(directory).run / "supervisor.sock"
    try:
        wait_until(lambda: socket.exists() or process.poll() is not None, _READY_SECONDS_MAX)
        try:
            call(StateDirectory(directory), "wait", timeout_seconds=_READY_SECONDS_MAX)
        except (NotRunningError, RefusedError, TimeoutError) as error:
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=_STOP_SECONDS_MAX)[1]
            raise ClusterStartError(said.strip() or str(error)) from None
        yield
    finally:
        for _ in range(2):  # the second signal kills processes that do not stop at once
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        process.communicate(timeout=_STOP_SECONDS_MAX)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process and close its pipes.

    `Popen.communicate` is not used: it fails after an earlier call that Ctrl-C interrupted.
    """
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
