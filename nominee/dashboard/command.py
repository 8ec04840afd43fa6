"""`nominee dashboard`: a page with a time axis over a cluster or a history."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click

from nominee.commands.common import directory_option, end_as_by_ctrl_c


@click.command()
@click.argument("file", required=False, type=click.Path(exists=True, path_type=Path))
@directory_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="The port on 127.0.0.1.  [default: a free one]",
)
@click.option("--read-only", is_flag=True, help="Show only: the page has no actions.")
@click.option("--verify", is_flag=True, help="Check the invariants on the history, and mark broken ones.")
def dashboard(file: Path | None, directory: Path, port: int, read_only: bool, verify: bool) -> None:
    """Show a cluster in the browser: nodes, pods, queues and processes, now and at each earlier moment.

    \b
    nominee dashboard
    nominee dashboard --dir .nominee --port 8001
    nominee dashboard findings/001/history.gz

    Without FILE it is the cluster that runs in the directory, or that was stopped there. A FILE is the
    history.gz of a scenario, a chaos case or a cell of a skew report, or its directory.

    Open the URL that is printed; it has a token, and answers to this machine only. Ctrl-C ends it. The exit
    status is 2 if the history cannot be read.
    """
    # 900 ms that --help and completion would pay.
    import anyio

    from nominee.commands.measuring.history import unreadable
    from nominee.dashboard.serving import Options, PortTakenError, load, serve, show, until_signal
    from nominee.lab.history.history_file import NAME
    from nominee.lab.history.verification.reading import is_running, readable
    from nominee.machinery.runtime.clock import SystemClock

    end_as_by_ctrl_c()
    if file is not None and file.is_dir():
        file = file / NAME
    runs, clock = file is None and is_running(directory), SystemClock()
    options = Options(
        directory=directory, file=file, is_running=runs, port=port, read_only=read_only, verifies=verify
    )
    try:
        with unreadable(directory):
            if runs:
                anyio.run(until_signal, show(options, clock, _announce))
            else:
                # The etcd of a cluster that is down runs only while it is read.
                with readable(directory) if file is None else nullcontext():
                    loaded = anyio.run(load, options, clock)
                anyio.run(until_signal, serve(loaded, options, clock, _announce))
    except PortTakenError as error:
        raise click.ClickException(f"--port {port}: {error}; choose another one") from None
    raise KeyboardInterrupt


def _announce(url: str, _: int) -> None:
    click.echo(f"{url}\nopen it in a browser of this machine; Ctrl-C ends the dashboard")
