"""Record a cluster's history until SIGTERM: the process of `nominee up --history`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import click

from nominee.lab.history.history_file import HistoryFileError
from nominee.lab.history.recorder import Recorder
from nominee.machinery.process import run_files
from nominee.machinery.process.parent_death import die_with_parent
from nominee.machinery.runtime.clock import SystemClock, rfc3339

NAME = "history"


@click.command()
@click.option("--dir", "directory", type=click.Path(path_type=Path), required=True)
def main(directory: Path) -> None:
    """Record every write of the cluster in DIR/history.gz."""
    die_with_parent()
    clock = SystemClock()
    try:
        recorder = Recorder(directory, clock)
    except (OSError, HistoryFileError) as error:
        raise click.ClickException(f"{error}; move the file away") from None
    started = {"component": NAME, "name": NAME, "pid": os.getpid(), "startTime": rfc3339(clock.now())}
    run_files.write(directory, NAME, started)
    try:
        anyio.run(_until_signal, recorder)
    finally:
        run_files.remove(directory, NAME, os.getpid())


async def _until_signal(recorder: Recorder) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                async for _ in signals:
                    group.cancel_scope.cancel()
                    return

            group.start_soon(stop)
            await recorder.run()
            group.cancel_scope.cancel()


if __name__ == "__main__":
    main()
