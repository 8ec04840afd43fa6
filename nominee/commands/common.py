"""Options that many subcommands share, and their errors."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from nominee.completion.candidates import completing, feature_gates, versions
from nominee.localcluster.supervisor.clock import SECONDS_MAX
from nominee.localcluster.supervisor.commands.client import NotRunningError, RefusedError, call
from nominee.localcluster.supervisor.directory import JsonObject, StateDirectory, process_letter
from nominee.machinery.process.serving_port.serving_client import ServingPort
from nominee.machinery.process.signals import termination_signals

if TYPE_CHECKING:
    from nominee.importing.live import LiveState
    from nominee.machinery.api.kinds import AnyKind

_REPEATED_SECONDS: Final = 0.05

F = TypeVar("F", bound=Callable[..., Any])


class Seconds(click.ParamType["float"]):
    """A duration in seconds, more than 0 and at most a day (click's `float` also accepts `nan`)."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = float(value)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds <= SECONDS_MAX:
            self.fail(f"{value!r} is not a number of seconds up to {SECONDS_MAX}", param, ctx)
        return seconds


class WritableDirectory(click.Path):
    """A directory in which the command will write; it need not exist."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        full = Path(value).absolute()
        nearest = next(each for each in (full, *full.parents) if os.path.exists(each))
        if not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
            reason = "cannot be written" if nearest.is_dir() else "is a file"
            self.fail(f"{nearest} {reason}", param, ctx)
        return path


def directory_option(command: F) -> F:
    """Add `--dir D`: the cluster's state directory, as `directory: Path` (absolute)."""
    return click.option(
        "--dir",
        "directory",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(".nominee"),
        envvar="NOMINEE_DIR",
        show_default=True,
        show_envvar=True,
        callback=lambda _context, _parameter, value: value.absolute(),
        help="The cluster's state directory.",
    )(command)


def output_option(*choices: str) -> Callable[[F], F]:
    """Add `-o`; the first choice is the default."""

    def decorate(command: F) -> F:
        return click.option(
            "-o",
            "--output",
            type=click.Choice(choices),
            default=choices[0],
            show_default=True,
            help="Output format.",
        )(command)

    return decorate


def version_options(command: F) -> F:
    """Add `--emulated-version` and `--feature-gates`, which may be repeated."""
    version = click.option(
        "--emulated-version",
        multiple=True,
        metavar="COMPONENT=1.NN,...",
        shell_complete=completing(versions),
        help="The Kubernetes version to emulate; 1.NN without a component is for all.",
    )
    gates = click.option(
        "--feature-gates",
        multiple=True,
        metavar="COMPONENT=Gate=bool,...",
        shell_complete=completing(feature_gates),
        help="Feature gates; Gate=bool without a component is for all.",
    )
    return version(gates(command))


def kubeconfig_options(command: F) -> F:
    """Add `--kubeconfig` and `--context`: a running cluster of any kind as a source of objects."""
    file = click.option(
        "--kubeconfig",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Read the objects from a running cluster instead of files; nothing is written there.",
    )
    context = click.option("--context", help="The context of the kubeconfig, if it is not the current one.")
    return file(context(command))


def read_live_state(kubeconfig: Path, context: str | None, wanted: Collection[AnyKind] = ()) -> LiveState:
    """Return the objects of a running cluster; print which kinds it does not list.

    Raises:
        click.ClickException: it cannot be read.
    """
    # 300 ms that --help and completion would pay.
    from nominee.importing.live import read_live
    from nominee.importing.sources import SourceError

    try:
        state = read_live(kubeconfig, context, wanted)
    except SourceError as error:
        raise click.ClickException(str(error)) from None
    for kind, problem in state.problems.items():
        click.echo(f"warning: {kind} is not listed: {problem}", err=True)
    return state


def echo_json(document: object) -> None:
    """Print a document as indented JSON."""
    click.echo(json.dumps(document, indent=2))


def end_as_by_ctrl_c() -> None:
    """Let SIGTERM and SIGHUP end this command as Ctrl-C does, so that it removes its processes and files.

    Only the first signal counts: a closed terminal sends SIGHUP twice, and the second must not interrupt
    the clean-up. An interrupt that comes while Python runs a finalizer or a weak reference's callback (each
    import runs one) would be printed and forgotten: it is repeated.
    """

    ending = termination_signals()

    def interrupt(number: int, frame: FrameType | None) -> None:
        for other in ending:
            signal.signal(other, signal.SIG_IGN)
        signal.default_int_handler(number, frame)

    def repeat(unraisable: sys.UnraisableHookArgs) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, _REPEATED_SECONDS)
        else:
            sys.__unraisablehook__(unraisable)

    for number in ending:
        signal.signal(number, interrupt)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    sys.unraisablehook = repeat


def ask_supervisor(
    directory: Path, command: str, *, timeout_seconds: float = 30.0, **fields: object
) -> JsonObject:
    """Call the supervisor; return its answer.

    Raises:
        click.ClickException: the supervisor refused or does not run; the message says what to do.
    """
    # 60 ms that --help and completion would pay.
    from nominee.localcluster.plan import directory_hint

    hint = directory_hint(directory)
    try:
        return call(StateDirectory(directory), command, timeout_seconds=timeout_seconds, **fields)
    except NotRunningError as error:
        raise click.ClickException(f"{error}; start one with `nominee up{hint}`") from None
    except RefusedError as error:
        raise click.ClickException(str(error)) from None
    except TimeoutError as error:
        raise click.ClickException(f"{error}; see `nominee status{hint}` and `nominee logs`") from None


def serving_ports(directory: Path, component: str, *, allows_paused: bool = False) -> dict[str, ServingPort]:
    """Return the serving ports of a running process, or of all of a component, by process name.

    Raises:
        click.ClickException: the process does not run, or has no serving port, or is paused: it would not
            answer.
    """
    # 50 ms that --help and completion would pay.
    from nominee.localcluster.plan import directory_hint
    from nominee.localcluster.up_options.options import OptionError, target

    try:
        name = target("COMPONENT", component)
    except OptionError as error:
        raise click.UsageError(error.message) from None
    running = StateDirectory(directory).live_run_files()
    named = {each: found for each, found in running.items() if each == name}
    found = named or {each: found for each, found in running.items() if found.get("component") == name}
    if not found:
        hint = directory_hint(directory)
        raise click.ClickException(
            f"{name} does not run in {directory}; see `nominee status{hint}`, start it with "
            f"`nominee up{hint}` or `nominee start {name}{hint}`"
        )
    for each, document in found.items():
        if not document.get("http"):
            raise click.ClickException(f"{each} has no serving port")
        if not allows_paused and process_letter(document["pid"]) == "T":
            resume = f"nominee resume {each}{directory_hint(directory)}"
            raise click.ClickException(f"{each} is paused and does not answer; `{resume}` continues it")
    return {each: ServingPort.of(str(document["http"]), directory) for each, document in found.items()}
