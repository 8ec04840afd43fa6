"""`nominee down`: stop a cluster in order."""

from __future__ import annotations

from pathlib import Path

import click

from nominee.commands.common import Seconds, directory_option
from nominee.localcluster.supervisor.clock import wait_until
from nominee.localcluster.supervisor.commands.client import NotRunningError, call
from nominee.localcluster.supervisor.directory import StateDirectory, lock_holder


@click.command()
@directory_option
@click.option(
    "--kill", is_flag=True, help="Send SIGKILL to all processes at once, instead of SIGTERM in order."
)
@click.option("--timeout", type=Seconds(), default=60.0, show_default=True, help="How many seconds to wait.")
def down(directory: Path, kill: bool, timeout: float) -> None:
    """Stop the cluster, etcd last.

    The autoscaler stops first, then the other clients, the API server and etcd. It is no error if no
    cluster runs.
    """
    state = StateDirectory(directory)
    try:
        call(state, "down", timeout_seconds=timeout, kill=kill)
    except NotRunningError:
        if lock_holder(state) is None:
            if live := state.live_run_files():
                found = ", ".join(f"{name} (pid {document['pid']})" for name, document in live.items())
                raise click.ClickException(
                    f"processes not started by `nominee up` serve from {directory}: {found}; "
                    "end them where they were started"
                ) from None
            click.echo(f"no cluster runs in {directory}")
            return
    except TimeoutError as error:
        raise click.ClickException(f"{error}; `nominee down --kill` kills all processes at once") from None
    if not wait_until(lambda: lock_holder(state) is None, timeout):
        raise click.ClickException(f"the supervisor (pid {lock_holder(state)}) is still running")
    click.echo(f"the cluster in {directory} is down")
