"""`nominee explain -f FILE`: where the scheduler would put a pod, and why not elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nominee.commands.common import output_option

if TYPE_CHECKING:
    from machinery.versions import Version
    from nominee.explain.cases import Case
    from scheduler.explanation.verdict import Verdict

_WIDTH_UNLESS_TERMINAL = 200  # columns of a table that goes into a file or a pipe


_FILE_HELP = "Manifests of a cluster (YAML or JSON), a case, or a .jsonl of cases; - is stdin."
_WHAT_IF_HELP = (
    "Change the cluster first: 'node n3 +4cpu', 'add node n9 like n3', 'remove node n3', "
    "'remove pod NS/NAME', 'pod NS/NAME on n3'. May be given several times."
)


@click.command()
@click.option(
    "-f",
    "--filename",
    "file",
    required=True,
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help=_FILE_HELP,
)
@click.option("--pod", default="", metavar="NS/NAME", help="Which pod; default: every pending one.")
@click.option("--emulated-version", default="", metavar="1.NN", help="Decide as this version does.")
@click.option("--feature-gates", default="", metavar="A=true,B=false", help="On top of the version's.")
@click.option("--what-if", "changes", multiple=True, metavar="CHANGE", help=_WHAT_IF_HELP)
@output_option("table", "json", "jsonl")
def explain(
    file: str, pod: str, emulated_version: str, feature_gates: str, changes: tuple[str, ...], output: str
) -> None:
    """Show where the scheduler would put pods of a cluster that is only a file, and why not elsewhere.

    Nothing has to run. Nodes, pods (those with a nodeName run), volumes, budgets and so on are taken as they
    stand in the file. Cases are judged as 1.36 does, manifests as the newest version, unless told otherwise.
    """
    from machinery.errors import StatusError
    from machinery.versions import GateError, parse_gates
    from machinery.wire.scalars import DecodeError
    from nominee.explain.what_if import ChangeError
    from scheduler.explanation.verdict import ExplainError

    try:
        gates = parse_gates(feature_gates)
        version = _version(emulated_version)
        _show(_verdicts(file, pod, version, gates, changes), output)
    except GateError as error:
        raise click.UsageError(str(error)) from None
    except ChangeError as error:
        raise click.UsageError(f"--what-if: {error}") from None
    except (DecodeError, StatusError, ExplainError) as error:
        raise click.ClickException(f"{file}: {error}") from None


def _version(text: str) -> Version | None:
    from machinery.versions import Version

    if not text:
        return None
    try:
        return Version.parse(text)
    except ValueError as error:
        raise click.UsageError(f"--emulated-version: {error}") from None


def _verdicts(
    file: str, pod: str, version: Version | None, gates: dict[str, bool], changes: tuple[str, ...]
) -> Iterator[tuple[str, Verdict]]:
    """Each verdict with the case's name, or the pod's where the file has no cases."""
    from machinery.clock import SystemClock
    from nominee.explain.cases import read_cases
    from nominee.explain.what_if import change
    from scheduler.explanation.verdict import explain as explain_pod

    clock = SystemClock()
    for case in read_cases(_read(file), lines=file.endswith(".jsonl")):
        case = replace(case, documents=change(case.documents, changes)) if changes else case
        world = case.world(version, gates, clock)
        if world.unknown and not case.name:
            click.echo(f"not looked at: {', '.join(world.unknown)}", err=True)
        for key in _pods(case, pod or case.pod, world):
            yield case.name or key, explain_pod(world.framework, world.snapshot, world.pods[key])


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"-f {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.ClickException(f"{file}: not text in UTF-8") from None


def _pods(case: Case, wanted: str, world: Any) -> list[str]:
    """Keys of the pods to be explained."""
    where = f"{case.name}: " if case.name else ""
    if not wanted:
        found = [str(pod.key) for pod in world.pending()]
        if not found:
            raise click.ClickException(f"{where}no pod waits for a node; name one with --pod")
        return found
    key = wanted if "/" in wanted else f"default/{wanted}"
    if key not in world.pods:
        waiting = ", ".join(str(pod.key) for pod in world.pending()) or "none"
        raise click.ClickException(f"{where}there is no pod {key}; pending pods: {waiting}")
    node = world.pods[key].pod.spec.nodeName
    if node:
        raise click.ClickException(f"{where}pod {key} is on node {node} already")
    return [key]


def _show(verdicts: Iterator[tuple[str, Verdict]], output: str) -> None:
    """Tables and lines as they come; JSON as one document, a list if there are several verdicts."""
    if output == "json":
        documents = [
            {"name": name, "expect": verdict.expect(), "extra": verdict.extra()} for name, verdict in verdicts
        ]
        click.echo(json.dumps(documents[0] if len(documents) == 1 else documents, indent=2))
        return
    for name, verdict in verdicts:
        if output == "jsonl":
            click.echo(json.dumps({"name": name, "expect": verdict.expect()}))
        else:
            _print_table(name, verdict)


def _print_table(name: str, verdict: Verdict) -> None:
    from rich.console import Console

    from nominee.explain.tables import render

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(width=_WIDTH_UNLESS_TERMINAL, highlight=False)
    with console.capture() as capture:
        if name != str(verdict.pod.key):
            console.print(name, style="dim", markup=False)
        console.print(render(verdict.document()))
    for line in capture.get().splitlines():
        click.echo(line.rstrip(), color=True)
    click.echo()
