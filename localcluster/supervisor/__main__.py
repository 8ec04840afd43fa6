"""`python -m nominee.localcluster.supervisor --dir D [--lock-fd N]`: run the cluster of D/run/plan.json.

`nominee up` writes the plan, takes the lock and execs this program, which uses less memory.
"""

from __future__ import annotations

import signal

# Ctrl-C ends the process while it imports modules; the supervisor sets its own handlers before it starts a
# process.
signal.signal(signal.SIGINT, signal.SIG_DFL)

# ruff: noqa: E402
import argparse
import os
import sys
from pathlib import Path

from nominee.localcluster.supervisor.clock import monotonic
from nominee.localcluster.supervisor.directory import InUseError, StateDirectory, acquire_lock
from nominee.localcluster.supervisor.model.spec import ClusterSpec
from nominee.localcluster.supervisor.report import Printer
from nominee.localcluster.supervisor.shell import Supervisor
from nominee.machinery.process import file_lock


def main() -> int:
    """Run the supervisor until no process is left; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m nominee.localcluster.supervisor")
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--lock-fd", type=int, help="an open, locked descriptor of D/run/supervisor.lock")
    options = parser.parse_args()
    directory = StateDirectory(options.dir)
    try:
        lock = options.lock_fd if options.lock_fd is not None else acquire_lock(directory)
    except InUseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    os.set_inheritable(lock, False)
    file_lock.name_holder(lock, os.getpid())
    spec = ClusterSpec.from_json(directory.plan.read_text(encoding="utf-8"))
    return Supervisor(spec, monotonic, Printer(sys.stdout), Printer(sys.stderr)).run()


if __name__ == "__main__":
    sys.exit(main())
