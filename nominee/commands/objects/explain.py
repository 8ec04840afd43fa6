"""`nominee explain`: where the scheduler would place a pod, and why not on other nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nominee.commands.common import directory_option, kubeconfig_options, output_option
from nominee.commands.objects.explain_sources import Source
from nominee.explain.live import explain_running

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nominee.explain.explainer import Setup
    from nominee.explain.files import ClusterFile
    from nominee.machinery.features.gates import Version
    from nominee.scheduler.explanation.format import LivePodExplanation, PodExplanation

_GOES = "goes to "
_CHOICE_MAX = 8  # nodes that a table names
_WIDTH_UNLESS_TERMINAL = 200  # width of a table that is written to a file or a pipe

_FILE_HELP = "Manifests of a cluster (YAML or JSON), or a .jsonl of clusters; - is stdin."
_CONFIG_HELP = "A KubeSchedulerConfiguration: profiles, weights, arguments. Its extenders are not called."
_PLUGIN_HELP = "An out-of-tree plugin that the configuration names. Repeatable."
_WHAT_IF_HELP = (
    "Change the cluster first: 'node n3 +4cpu', 'drain node n3', 'add 5 nodes like n3', 'taint node n3 "
    "key-', 'label node n3 zone=b', 'pod NS/NAME cpu=2', 'pod NS/NAME priority=100', 'remove pod NS/NAME' "
    "and others (docs/explain.md). Repeatable; or several, separated by semicolons."
)
_COMPARE_HELP = (
    "Show the pods about which two versions or gates answer differently: 1.35,1.37 or Gate=true,Gate=false. "
    "Of FILE, of the kubeconfig's or of the running cluster; a bound pod is taken off its node first."
)


@click.command()
@click.argument("subject", nargs=-1, metavar="[pod [NS/]NAME]")
@click.option(
    "-f", "--filename", "file", default="", type=click.Path(allow_dash=True), metavar="FILE", help=_FILE_HELP
)
@kubeconfig_options
@click.option(
    "--pod",
    default="",
    metavar="NS/NAME",
    help="The pod of FILE or of the kubeconfig's cluster; default: every pending pod.",
)
@click.option(
    "--emulated-version",
    default="",
    metavar="1.NN",
    help="The Kubernetes version to emulate; default: that of the kubeconfig's cluster, or the newest.",
)
@click.option(
    "--feature-gates",
    default="",
    metavar="A=true,B=false",
    help="Feature gates that differ from their defaults.",
)
@click.option("--config", default="", metavar="FILE", help=_CONFIG_HELP)
@click.option("--plugin", "plugins", multiple=True, metavar="MODULE:CLASS", help=_PLUGIN_HELP)
@click.option("--what-if", "changes", multiple=True, metavar="CHANGE", help=_WHAT_IF_HELP)
@click.option("--compare", default="", metavar="A,B", help=_COMPARE_HELP)
@directory_option
@click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the running pod.")
@click.option(
    "--scheduler", default="scheduler", show_default=True, help="The scheduler to ask; of several the leader."
)
@click.option(
    "--nodes", default=100, show_default=True, help="Show at most this many nodes of a running cluster."
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the JSON output.")
@output_option("table", "json", "jsonl")
def explain(
    *,
    subject: tuple[str, ...],
    file: str,
    kubeconfig: Path | None,
    context: str | None,
    pod: str,
    emulated_version: str,
    feature_gates: str,
    config: str,
    plugins: tuple[str, ...],
    changes: tuple[str, ...],
    compare: str,
    directory: Path,
    namespace: str,
    scheduler: str,
    nodes: int,
    schema: bool,
    output: str,
) -> None:
    """Explain where a pod would be scheduled.

    `nominee explain pod NS/NAME` asks the running scheduler: the pod's last attempts, what a scheduling cycle
    would decide now, which pods preemption would evict, which events move the pod out of the queue.

    `nominee explain -f FILE` needs no running cluster. The file describes the cluster: nodes, pods (those
    with spec.nodeName run there), volumes, PodDisruptionBudgets and so on. What is not in the file does not
    exist.

    With --kubeconfig the objects are those of a real cluster, which is only read; its version decides. It
    takes everything that a file does.

    \b
    Examples:
      nominee explain pod default/web
      nominee explain --kubeconfig ~/.kube/config --context prod pod default/web
      nominee explain -f cluster.yaml --pod default/web --what-if 'node n3 +4cpu'
      nominee explain -f cluster.yaml -o jsonl | jq .selectedNodes
    """
    if schema:
        # 5 ms that --help and completion would pay.
        from nominee.explain.schema import SCHEMA_FILE

        click.echo(SCHEMA_FILE.read_text(encoding="utf-8"), nl=False)
        return
    if (file and kubeconfig) or (context and not kubeconfig):
        raise click.UsageError("give -f FILE, or --kubeconfig and possibly --context")
    source = Source(file, kubeconfig, context, directory)
    if compare:
        names = compare.split(",")
        if len(names) != 2 or subject or pod:
            raise click.UsageError("--compare takes two versions or gates, for all pods: 1.35,1.37")
        with _errors(source):
            settings = [_setup(*_setting(each, emulated_version), config, plugins, changes) for each in names]
            _compare(settings, source.clusters(), names, output)
        return
    if (subject and pod) or not (subject or file or kubeconfig):
        raise click.UsageError(
            "give a pod of the running cluster (`pod NS/NAME`), manifests with -f FILE, or a --kubeconfig"
        )
    if subject:
        pod = _key(subject, namespace)
    if file or kubeconfig:
        with _errors(source):
            setup = _setup(_version(emulated_version), feature_gates, config, plugins, changes)
            _show(_explain(source, pod, setup), output, has_pod=bool(pod))
        return
    given = {"--what-if": changes, "--config": config, "--plugin": plugins}
    given |= {"--emulated-version": emulated_version, "--feature-gates": feature_gates}
    for name in (name for name, value in given.items() if value):
        hint = f"--kubeconfig {directory / 'kubeconfig'}"
        raise click.UsageError(f"{name} needs the cluster's objects: add {hint}")
    _show_live(explain_running(pod, directory=directory, scheduler=scheduler, nodes=nodes), output)


def _key(subject: tuple[str, ...], namespace: str) -> str:
    """Return `pod web`, `pod ns/web` and `pod/web` as NS/NAME."""
    words = "/".join(subject).split("/")
    if words[0] not in ("pod", "pods", "po") or len(words) not in (2, 3) or not all(words):
        raise click.UsageError("expected `nominee explain pod NS/NAME`")
    return "/".join(words[1:] if len(words) == 3 else (namespace, words[1]))


def _explain(source: Source, pod: str, setup: Setup) -> Iterator[PodExplanation]:
    """Yield the explanations of one pod, or of every pending pod."""
    # 470 ms that --help and completion would pay.
    from nominee.explain.explainer import explain_pods, with_suggestions
    from nominee.machinery.runtime.clock import SystemClock

    clock = SystemClock()
    for cluster_file in source.clusters():
        cluster = setup.build(cluster_file, clock)
        if cluster.unserved:
            where = f"{cluster_file.name}: " if cluster_file.name else ""
            click.echo(f"{where}ignored, as not served: {', '.join(cluster.unserved)}", err=True)
        chosen = pod or cluster_file.pod
        for found in explain_pods(cluster, chosen, name=cluster_file.name):
            # Of many pods each would build the cluster several times.
            yield with_suggestions(setup, cluster_file, clock, cluster, found) if chosen else found


def _setting(text: str, version: str) -> tuple[Version | None, str]:
    """Return version and gates of one side of --compare."""
    return (_version(version), text) if "=" in text else (_version(text), "")


def _compare(
    settings: Sequence[Setup], clusters: Iterator[ClusterFile], names: Sequence[str], output: str
) -> None:
    """Print the pods about which the settings answer differently."""
    from nominee.explain.explainer import answers
    from nominee.machinery.printing.tables import table
    from nominee.machinery.runtime.clock import SystemClock

    clock, rows, count = SystemClock(), list[list[str]](), 0
    for cluster in clusters:
        first, second = (dict(answers(setting.build(cluster, clock))) for setting in settings)
        count += len(first)
        rows += [[pod, text, second[pod]] for pod, text in first.items() if second[pod] != text]
    if output == "table":
        rows = [[pod, _choice(text, other), _choice(other, text)] for pod, text, other in rows]
        lines = table(["POD", *(name.upper() if "=" not in name else name for name in names)], rows)
        click.echo("\n".join([*(lines if rows else ()), f"{len(rows)} of {count} pods have another answer"]))
    else:
        click.echo(
            json.dumps(
                {"pods": count, "changed": [dict(zip(("pod", *names), row, strict=True)) for row in rows]}
            )
        )


def _choice(text: str, other: str) -> str:
    """Return an answer for a table: of many nodes how many there are, and those that the other has not."""
    nodes = [each.removeprefix(_GOES).split(" or ") for each in (text, other)]
    if not text.startswith(_GOES) or len(nodes[0]) <= _CHOICE_MAX:
        return text
    more = [node for node in nodes[0] if node not in set(nodes[1])] if other.startswith(_GOES) else []
    named = ", ".join(more[:_CHOICE_MAX]) + (" and others" if len(more) > _CHOICE_MAX else "")
    return f"{_GOES}one of {len(nodes[0])} nodes" + (f", also {named}" if more else "")


@contextmanager
def _errors(source: Source) -> Iterator[None]:
    """Report every mistake in the input as an error of the command."""
    # 470 ms that --help and completion would pay.
    from nominee.explain.explainer import PodError
    from nominee.explain.what_if import ChangeError
    from nominee.machinery.api.errors import StatusError
    from nominee.machinery.features.gates import GateError
    from nominee.machinery.wire.values.scalars import DecodeError
    from nominee.scheduler.explanation.verdict import ExplainError
    from nominee.scheduler.framework.runtime.plugin_set import PluginConfigError
    from nominee.scheduler.framework.runtime.profile import ArgumentError

    try:
        yield
    except GateError as error:
        raise click.UsageError(str(error)) from None
    except ChangeError as error:
        raise click.UsageError(f"--what-if: {error}") from None
    except (ArgumentError, PluginConfigError) as error:
        raise click.UsageError(f"--config: {error}") from None
    except PodError as error:
        raise click.ClickException(str(error)) from None
    except (DecodeError, StatusError, ExplainError) as error:
        name = source.file or source.kubeconfig
        raise click.ClickException(f"{name}: {error}" if name else str(error)) from None


def _version(text: str) -> Version | None:
    # 6 ms that --help and completion would pay.
    from nominee.machinery.features.gates import Version

    if not text:
        return None
    try:
        return Version.parse(text)
    except ValueError as error:
        raise click.UsageError(f"--emulated-version: {error}") from None


def _setup(
    version: Version | None, gates: str, config: str, plugins: Sequence[str], changes: Sequence[str]
) -> Setup:
    """Return the setup; the configuration is read as the scheduler reads it."""
    # 440 ms that --help and completion would pay.
    from nominee.explain.explainer import Setup
    from nominee.machinery.features.gates import parse_gates
    from nominee.machinery.process.component import BadConfiguration

    if not config and not plugins:
        return Setup(version=version, gates=parse_gates(gates), changes=changes)
    # 470 ms that --help and completion would pay.
    from nominee.scheduler.configuration.reading import plugin_folders, read_config, read_profiles
    from nominee.scheduler.plugin_loader import search_also

    try:
        configuration = read_config(config)
        search_also(plugin_folders(config))
        classes, profiles = read_profiles(configuration, plugins)
    except BadConfiguration as error:
        raise click.UsageError(f"--config {error}") from None
    if configuration.extenders:
        click.echo(f"{len(configuration.extenders)} extenders are not called", err=True)
    return Setup(
        version=version, gates=parse_gates(gates), profiles=profiles, classes=classes, changes=changes
    )


def _show(explanations: Iterator[PodExplanation], output: str, *, has_pod: bool) -> None:
    """Print tables and lines one by one; JSON as one document, a list unless the caller named the pod."""
    if output == "json":
        # 410 ms that --help and completion would pay.
        from nominee.scheduler.explanation.document import explanation_list

        documents = list(explanations)
        is_one = has_pod and len(documents) == 1
        click.echo(json.dumps(documents[0] if is_one else explanation_list(documents), indent=2))
        return
    # 30 ms that --help and completion would pay.
    from nominee.explain.tables import render

    for explanation in explanations:
        if output == "jsonl":
            click.echo(json.dumps(explanation))
        else:
            _print(explanation.get("cluster", ""), render(explanation))


def _show_live(document: LivePodExplanation, output: str) -> None:
    # 20 ms that --help and completion would pay.
    from nominee.explain.tables import render_live

    if output == "table":
        _print("", render_live(document))
    else:
        click.echo(json.dumps(document, indent=2 if output == "json" else None))


def _print(heading: str, page: RenderableType) -> None:
    """Print a page, in colour where the terminal has colours."""
    # 20 ms that --help and completion would pay.
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
