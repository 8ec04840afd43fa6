"""`nominee explain`: where the scheduler puts a pod, and why not elsewhere; live or of a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nominee.commands.common import directory_option, output_option

if TYPE_CHECKING:
    from rich.console import RenderableType

    from machinery.features.gates import Version
    from machinery.runtime.clock import Clock
    from nominee.explain.cases import Case
    from nominee.explain.world import World
    from scheduler.explanation.verdict import Verdict
    from scheduler.framework.interface import Plugin
    from scheduler.framework.profile import Profile

_WIDTH_UNLESS_TERMINAL = 200  # columns of a table that goes into a file or a pipe
_TOLD_MAX = 10  # pods that an error names

_FILE_HELP = "Manifests of a cluster (YAML or JSON), a case, or a .jsonl of cases; - is stdin."
_CONFIG_HELP = "A KubeSchedulerConfiguration: profiles, weights, arguments. Its extenders are not asked."
_PLUGIN_HELP = "A plugin from outside that the configuration names; may be given several times."
_WHAT_IF_HELP = (
    "Change the cluster first: 'node n3 +4cpu', 'add node n9 like n3', 'remove node n3', "
    "'remove pod NS/NAME', 'pod NS/NAME on n3'. May be given several times."
)


@click.command()
@click.argument("subject", nargs=-1, metavar="[pod [NS/]NAME]")
@click.option(
    "-f", "--filename", "file", default="", type=click.Path(allow_dash=True), metavar="FILE", help=_FILE_HELP
)
@click.option("--pod", default="", metavar="NS/NAME", help="Which pod of FILE; default: every pending one.")
@click.option("--emulated-version", default="", metavar="1.NN", help="Decide as this version does.")
@click.option("--feature-gates", default="", metavar="A=true,B=false", help="On top of the version's.")
@click.option("--config", default="", metavar="FILE", help=_CONFIG_HELP)
@click.option("--plugin", "plugins", multiple=True, metavar="MODULE:CLASS", help=_PLUGIN_HELP)
@click.option("--what-if", "changes", multiple=True, metavar="CHANGE", help=_WHAT_IF_HELP)
@directory_option
@click.option("-n", "--namespace", default="default", show_default=True, help="Of a running cluster's pod.")
@click.option("--scheduler", default="scheduler", show_default=True, help="Which scheduler process.")
@click.option("--nodes", default=100, show_default=True, help="At most so many nodes of a running cluster.")
@output_option("table", "json", "jsonl")
def explain(subject: tuple[str, ...], file: str, output: str, **options: Any) -> None:
    """Show where the scheduler puts a pod, and why not elsewhere.

    `nominee explain pod NS/NAME` asks the running scheduler: its last attempts, what it would find now, whom
    preemption would evict, what brings the pod back into the queue.

    `nominee explain -f FILE` needs nothing that runs. Nodes, pods (those with a nodeName run), volumes,
    budgets and so on are taken as they stand in the file. Cases are judged as 1.36 does, manifests as the
    newest version, unless told otherwise.
    """
    if bool(subject) == bool(file):
        raise click.UsageError("give a pod of the running cluster (`pod NS/NAME`), or manifests with -f FILE")
    if subject:
        from nominee.explain.live import explain_running

        document = explain_running(_key(subject, options["namespace"]), options)
        _show_running(document, output)
        return
    _explain_file(file, output, options)


def _key(subject: tuple[str, ...], namespace: str) -> str:
    """`pod web`, `pod ns/web` and `pod/web` as NS/NAME."""
    words = "/".join(subject).split("/")
    if words[0] not in ("pod", "pods", "po") or len(words) not in (2, 3) or not all(words):
        raise click.UsageError("say `nominee explain pod NS/NAME`")
    return "/".join(words[1:] if len(words) == 3 else (namespace, words[1]))


def _explain_file(file: str, output: str, options: Mapping[str, Any]) -> None:
    from machinery.api.errors import StatusError
    from machinery.features.gates import GateError, parse_gates
    from machinery.wire.scalars import DecodeError
    from nominee.explain.what_if import ChangeError
    from scheduler.explanation.verdict import ExplainError

    try:
        gates = parse_gates(options["feature_gates"])
        version = _version(options["emulated_version"])
        setup = _setup(options["config"], options["plugins"])
        _show(_verdicts(file, options["pod"], version, gates, options["changes"], setup), output)
    except GateError as error:
        raise click.UsageError(str(error)) from None
    except ChangeError as error:
        raise click.UsageError(f"--what-if: {error}") from None
    except (DecodeError, StatusError, ExplainError) as error:
        raise click.ClickException(f"{file}: {error}") from None


def _version(text: str) -> Version | None:
    from machinery.features.gates import Version

    if not text:
        return None
    try:
        return Version.parse(text)
    except ValueError as error:
        raise click.UsageError(f"--emulated-version: {error}") from None


@dataclass(frozen=True, slots=True)
class _Setup:
    """Profiles and the plugins they are made of."""

    profiles: Sequence[Profile]
    classes: Mapping[str, type[Plugin]]


def _setup(config: str, plugins: Sequence[str]) -> _Setup:
    """Of the scheduler's configuration, read as the scheduler reads it."""
    from machinery.process.component import BadConfiguration
    from scheduler.config_reading import plugin_folders, read_config, read_profiles
    from scheduler.plugin_loader import search_also

    if not config and not plugins:
        from scheduler.plugins.registry import IN_TREE

        return _Setup((), IN_TREE)
    try:
        found = read_config(config)
        search_also(plugin_folders(config))
        classes, profiles = read_profiles(found, plugins)
    except BadConfiguration as error:
        raise click.UsageError(f"--config {error}") from None
    if found.extenders:
        click.echo(f"{len(found.extenders)} extenders are not asked", err=True)
    return _Setup(profiles, classes)


def _verdicts(
    file: str,
    pod: str,
    version: Version | None,
    gates: dict[str, bool],
    changes: tuple[str, ...],
    setup: _Setup,
) -> Iterator[tuple[str, Verdict]]:
    """Each verdict with the case's name, or the pod's where the file has no cases."""
    from machinery.runtime.clock import SystemClock
    from nominee.explain.cases import read_cases
    from nominee.explain.what_if import change
    from scheduler.explanation.verdict import explain as explain_pod

    clock = SystemClock()
    for case in read_cases(_read(file), lines=file.endswith(".jsonl")):
        case = replace(case, documents=change(case.documents, changes)) if changes else case
        world = _world(case, version, gates, clock, setup)
        if world.unknown and not case.name:
            click.echo(f"not looked at: {', '.join(world.unknown)}", err=True)
        for key in _pods(case, pod or case.pod, world):
            info = world.pods[key]
            framework = world.framework_of(info)
            if framework is None:
                name, known = info.pod.spec.schedulerName, ", ".join(world.frameworks)
                raise click.ClickException(f"pod {key} is left to scheduler {name}; profiles: {known}")
            yield case.name or key, explain_pod(framework, world.snapshot, info)


def _world(case: Case, version: Version | None, gates: dict[str, bool], clock: Clock, setup: _Setup) -> World:
    from scheduler.framework.profile import ArgumentError
    from scheduler.framework.runtime import PluginConfigError

    try:
        return case.world(version, gates, clock, setup.profiles, setup.classes)
    except (ArgumentError, PluginConfigError) as error:
        raise click.UsageError(f"--config: {error}") from None


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
        pending = [str(pod.key) for pod in world.pending()]
        rest = len(pending) - _TOLD_MAX
        waiting = ", ".join(pending[:_TOLD_MAX]) + (f" and {rest} more" if rest > 0 else "") or "none"
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
    from nominee.explain.tables import render

    heading = name if name != str(verdict.pod.key) else ""
    _print(heading, render(verdict.document()))


def _show_running(document: Mapping[str, Any], output: str) -> None:
    from nominee.explain.tables import render_running

    if output == "table":
        _print("", render_running(document))
    else:
        click.echo(json.dumps(document, indent=2 if output == "json" else None))


def _print(heading: str, page: RenderableType) -> None:
    """With colours where the terminal has them."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(width=_WIDTH_UNLESS_TERMINAL, highlight=False)
    with console.capture() as capture:
        if heading:
            console.print(heading, style="dim", markup=False)
        console.print(page)
    for line in capture.get().splitlines():
        click.echo(line.rstrip(), color=True)
    click.echo()
