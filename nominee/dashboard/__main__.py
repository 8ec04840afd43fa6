"""Serve the dashboard of a cluster until SIGTERM: the process of `nominee up --dashboard`."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import click

from nominee.dashboard.serving import HOST, Options, PortTakenError, show, until_signal
from nominee.machinery.process import run_files
from nominee.machinery.process.parent_death import die_with_parent
from nominee.machinery.process.serving_port import serving_token
from nominee.machinery.runtime.clock import SystemClock, rfc3339

NAME = "dashboard"


@click.command()
@click.option("--dir", "directory", type=click.Path(path_type=Path), required=True)
def main(directory: Path) -> None:
    """Serve the dashboard of the cluster in DIR; its token is derived from that of the serving ports."""
    die_with_parent()
    token = serving_token.derive(serving_token.ensure(directory), NAME)
    options = Options(directory=directory, is_running=True, token=token, waits=True)
    try:
        anyio.run(_show, options)
    except PortTakenError as error:
        raise click.ClickException(str(error)) from None
    finally:
        run_files.remove(directory, NAME, os.getpid())


async def _show(options: Options) -> None:
    clock = SystemClock()

    def announce(_: str, port: int) -> None:
        document = {"component": NAME, "name": NAME, "pid": os.getpid(), "startTime": rfc3339(clock.now())}
        run_files.write(options.directory, NAME, {**document, "http": f"{HOST}:{port}"})

    await until_signal(show(options, clock, announce))


if __name__ == "__main__":
    main()
