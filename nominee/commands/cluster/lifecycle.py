"""`nominee start | stop | restart | pause | resume COMPONENT`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from nominee.commands.common import F, Seconds, ask_supervisor, directory_option
from nominee.completion.candidates import completing, own_gates, own_versions, process_names
from nominee.localcluster import version_skew
from nominee.localcluster.components import BY_NAME, UnknownComponentError, find_process
from nominee.localcluster.credentials.identities import tokens
from nominee.localcluster.credentials.pki import Pki
from nominee.localcluster.supervisor.directory import JsonObject, StateDirectory, read_json
from nominee.localcluster.supervisor.model.spec import ClusterSpec
from nominee.localcluster.up_options.options import OptionError, target
from nominee.machinery.features import gates as features

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
    help="Add an option from now on; it overrides that of `up`. Example: --arg=--log-level=debug",
)


def _settings(command: F) -> F:
    """Add --emulated-version and --feature-gates, which become `settings`: options of the process."""
    version = click.option(
        "--emulated-version",
        metavar="1.NN",
        default="",
        shell_complete=completing(own_versions),
        help="The Kubernetes version to emulate from now on.",
    )
    gates = click.option(
        "--feature-gates",
        multiple=True,
        metavar="Gate=bool,...",
        shell_complete=completing(own_gates),
        help="Feature gates from now on; those of `up` that are not named here stay.",
    )
    return version(gates(command))


def _added(
    component: str, arguments: tuple[str, ...], emulated_version: str, feature_gates: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the arguments for a version and gates, and those given; warn of gates without effect.

    Raises:
        click.UsageError: the component has none, or a value cannot be read.
    """
    if not emulated_version and not feature_gates:
        return arguments

    added = []
    try:
        known, _ = find_process(component)
        if not known.versioned:
            raise click.UsageError(f"{known.name} has no emulated version and no feature gates")
        if emulated_version:
            added.append(f"--emulated-version={features.parse_emulated_version(emulated_version)}")
        for text in feature_gates:
            for gate in features.parse_gates(text):
                if warning := features.no_effect(known.name, gate):
                    click.echo(f"warning: {warning}", err=True)
            added.append(f"--feature-gates={text}")
    except (UnknownComponentError, ValueError) as error:
        raise click.UsageError(str(error)) from None
    return (*added, *arguments)


def _warn_of_skew(directory: Path, component: str, emulated_version: str) -> None:
    """Warn of the components that this version leaves outside Kubernetes' version skew policy."""
    if not emulated_version:
        return

    known, process = find_process(component)
    emulated = {
        name: (str(document["component"]), features.Version.parse(str(document["emulatedVersion"])))
        for name, document in StateDirectory(directory).live_run_files().items()
        if document.get("emulatedVersion")
    }
    # One process of several, or all of the component; one that is down has no run file.
    named = [process] if process != known.name and process else []
    changed = named or [name for name, (each, _) in emulated.items() if each == known.name] or [known.name]
    for name in changed:
        emulated[name] = (known.name, features.parse_emulated_version(emulated_version))
    for problem in version_skew.problems(emulated):
        click.echo(f"warning: {problem}", err=True)


def ask(
    directory: Path,
    command: str,
    component: str,
    timeout: float,
    *,
    kill: bool = False,
    arguments: tuple[str, ...] = (),
) -> list[JsonObject]:
    """Let the supervisor carry out a command; return the processes that it was about.

    Raises:
        click.ClickException: it refuses, or a process rejects its arguments.
    """
    try:
        name = component if component in _programs(directory) else target("COMPONENT", component)
    except OptionError as error:
        raise click.UsageError(error.message) from None
    more = {"arguments": list(arguments)} if arguments else {}
    if arguments:
        _check(directory, name, arguments, timeout)
        reassign(StateDirectory(directory), name, arguments)
    answer = ask_supervisor(directory, command, timeout_seconds=timeout, component=name, kill=kill, **more)
    components: list[JsonObject] = answer["components"]
    return components


def _report(components: Sequence[JsonObject]) -> None:
    for process in components:
        pid = f" (pid {process['pid']})" if process["pid"] else ""
        click.echo(f"{process['name']} is {process['state']}{pid}")


def _check(directory: Path, name: str, arguments: Sequence[str], timeout: float) -> None:
    """Let a component check its arguments.

    Raises:
        click.ClickException: it refuses them, or cannot be asked.
    """
    try:
        ask_supervisor(directory, "check", timeout_seconds=timeout, component=name, arguments=list(arguments))
    except click.ClickException as error:
        # A component reports wrong options as click does: its usage, and then the error.
        _, mark, message = error.message.rpartition("Error: ")
        raise click.ClickException(f"{name}: {message}" if mark else error.message) from None


def _programs(directory: Path) -> set[str]:
    """Return the names of the cluster's processes that are no components, such as the dashboard."""
    plan = read_json(StateDirectory(directory).plan) or {}
    return {str(each["name"]) for each in plan.get("processes", ()) if each.get("component") not in BY_NAME}


def reassign(state: StateDirectory, name: str, arguments: Sequence[str] = ()) -> None:
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
@_settings
@_arguments
def start(
    component: str,
    directory: Path,
    timeout: float,
    emulated_version: str,
    feature_gates: tuple[str, ...],
    arguments: tuple[str, ...],
) -> None:
    """Start a component that is down.

    The command returns when the component is ready.
    """
    arguments = _added(component, arguments, emulated_version, feature_gates)
    _warn_of_skew(directory, component, emulated_version)
    _report(ask(directory, "start", component, timeout, arguments=arguments))


@click.command()
@_component
@directory_option
@_kill
@_timeout
def stop(component: str, directory: Path, kill: bool, timeout: float) -> None:
    """Stop a component until `nominee start`."""
    _report(ask(directory, "stop", component, timeout, kill=kill))


@click.command()
@_component
@directory_option
@_kill
@_timeout
@_settings
@_arguments
def restart(
    component: str,
    directory: Path,
    kill: bool,
    timeout: float,
    emulated_version: str,
    feature_gates: tuple[str, ...],
    arguments: tuple[str, ...],
) -> None:
    """Stop a component and start it again.

    The command returns when the component is ready. Another version or other gates are an upgrade of one
    component in a running cluster, or its rollback; they are checked before the component is stopped.
    """
    arguments = _added(component, arguments, emulated_version, feature_gates)
    _warn_of_skew(directory, component, emulated_version)
    _report(ask(directory, "restart", component, timeout, kill=kill, arguments=arguments))


@click.command()
@_component
@directory_option
@_timeout
def pause(component: str, directory: Path, timeout: float) -> None:
    """Freeze a component (SIGSTOP).

    `nominee resume` continues it.
    """
    _report(ask(directory, "pause", component, timeout))


@click.command()
@_component
@directory_option
@_timeout
def resume(component: str, directory: Path, timeout: float) -> None:
    """Continue a paused component (SIGCONT)."""
    _report(ask(directory, "resume", component, timeout))
