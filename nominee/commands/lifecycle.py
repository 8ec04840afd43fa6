"""`nominee start | stop | restart | pause | resume COMPONENT`."""

from __future__ import annotations

from pathlib import Path

import click

from nominee.commands.common import ask_supervisor, directory_option
from nominee.options import OptionError, target

_component = click.argument("component")
_kill = click.option("--kill", is_flag=True, help="SIGKILL instead of SIGTERM.")
_timeout = click.option("--timeout", type=float, default=30.0, show_default=True, help="Seconds to wait.")


def _ask(directory: Path, command: str, component: str, timeout: float, *, kill: bool = False) -> None:
    try:
        name = target("COMPONENT", component)
    except OptionError as error:
        raise click.UsageError(error.message) from None
    answer = ask_supervisor(directory, command, timeout_seconds=timeout, component=name, kill=kill)
    for process in answer["components"]:
        pid = f" (pid {process['pid']})" if process["pid"] else ""
        click.echo(f"{process['name']} is {process['state']}{pid}")


@click.command()
@_component
@directory_option
@_timeout
def start(component: str, directory: Path, timeout: float) -> None:
    """Start a component that is down, and wait until it is ready."""
    _ask(directory, "start", component, timeout)


@click.command()
@_component
@directory_option
@_kill
@_timeout
def stop(component: str, directory: Path, kill: bool, timeout: float) -> None:
    """Stop a component; it stays down until `nominee start`."""
    _ask(directory, "stop", component, timeout, kill=kill)


@click.command()
@_component
@directory_option
@_kill
@_timeout
def restart(component: str, directory: Path, kill: bool, timeout: float) -> None:
    """Stop a component, start it again and wait until it is ready."""
    _ask(directory, "restart", component, timeout, kill=kill)


@click.command()
@_component
@directory_option
@_timeout
def pause(component: str, directory: Path, timeout: float) -> None:
    """Freeze a component (SIGSTOP) until `nominee resume`."""
    _ask(directory, "pause", component, timeout)


@click.command()
@_component
@directory_option
@_timeout
def resume(component: str, directory: Path, timeout: float) -> None:
    """Let a frozen component go on, and wait until it is ready."""
    _ask(directory, "resume", component, timeout)
