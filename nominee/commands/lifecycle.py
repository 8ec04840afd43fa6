"""`nominee start | stop | restart | pause | resume COMPONENT`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from nominee.commands.common import Seconds, ask_supervisor, directory_option
from nominee.completion.candidates import process_names
from nominee.identities import tokens
from nominee.options import OptionError, target
from nominee.pki import Pki
from nominee.supervisor.directory import StateDirectory, read_json
from nominee.supervisor.spec import ClusterSpec

_component = click.argument("component", shell_complete=process_names)
_kill = click.option("--kill", is_flag=True, help="Send SIGKILL instead of SIGTERM.")
_timeout = click.option(
    "--timeout", type=Seconds(), default=30.0, show_default=True, help="How many seconds to wait."
)


_arguments = click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="--option=value",
    help="Add an option from now on; it overrides that of `up`. Example: --arg=--emulated-version=1.36",
)


def _ask(
    directory: Path,
    command: str,
    component: str,
    timeout: float,
    *,
    kill: bool = False,
    arguments: tuple[str, ...] = (),
) -> None:
    try:
        name = component if component in _programs(directory) else target("COMPONENT", component)
    except OptionError as error:
        raise click.UsageError(error.message) from None
    more = {"arguments": list(arguments)} if arguments else {}
    if arguments:
        ask_supervisor(directory, "check", timeout_seconds=timeout, component=name, arguments=list(arguments))
        _reassign(StateDirectory(directory), name, arguments)
    answer = ask_supervisor(directory, command, timeout_seconds=timeout, component=name, kill=kill, **more)
    for process in answer["components"]:
        pid = f" (pid {process['pid']})" if process["pid"] else ""
        click.echo(f"{process['name']} is {process['state']}{pid}")


def _programs(directory: Path) -> set[str]:
    """Return the names of the cluster's programs that are not Nominee's."""
    plan = read_json(StateDirectory(directory).plan) or {}
    return {str(each["name"]) for each in plan.get("processes", ()) if not each.get("ready_path", "/")}


def _reassign(state: StateDirectory, name: str, arguments: Sequence[str]) -> None:
    """Update the node names of a kubelet's credential, which may have changed with its arguments."""
    pki = Pki(state.path / "pki")
    try:
        if not pki.tokens.exists():
            return
        spec = ClusterSpec.from_json(state.plan.read_text(encoding="utf-8"))
        named = {process.name for process in spec.processes if name in (process.name, process.component)}
        changed = [
            replace(process, argv=(*process.argv, *arguments)) if process.name in named else process
            for process in spec.processes
        ]
        found = tokens(changed)
        pki.reassign({each: found[each] for each in named & found.keys()})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise click.ClickException(f"the credentials in {pki.path} cannot be changed: {error}") from None


@click.command()
@_component
@directory_option
@_timeout
@_arguments
def start(component: str, directory: Path, timeout: float, arguments: tuple[str, ...]) -> None:
    """Start a component that is down.

    The command returns when the component is ready.
    """
    _ask(directory, "start", component, timeout, arguments=arguments)


@click.command()
@_component
@directory_option
@_kill
@_timeout
def stop(component: str, directory: Path, kill: bool, timeout: float) -> None:
    """Stop a component until `nominee start`."""
    _ask(directory, "stop", component, timeout, kill=kill)


@click.command()
@_component
@directory_option
@_kill
@_timeout
@_arguments
def restart(component: str, directory: Path, kill: bool, timeout: float, arguments: tuple[str, ...]) -> None:
    """Stop a component and start it again.

    The command returns when the component is ready. With --arg it starts with another version or other
    gates: an upgrade of one component in a running cluster, or its rollback.
    """
    _ask(directory, "restart", component, timeout, kill=kill, arguments=arguments)


@click.command()
@_component
@directory_option
@_timeout
def pause(component: str, directory: Path, timeout: float) -> None:
    """Freeze a component (SIGSTOP).

    `nominee resume` continues it.
    """
    _ask(directory, "pause", component, timeout)


@click.command()
@_component
@directory_option
@_timeout
def resume(component: str, directory: Path, timeout: float) -> None:
    """Continue a paused component (SIGCONT)."""
    _ask(directory, "resume", component, timeout)
