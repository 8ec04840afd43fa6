"""`nominee vpa`: a vertical autoscaler in the foreground."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nominee.commands.common import Seconds, directory_option, output_option
from nominee.lab.vpa.policy import Policy

if TYPE_CHECKING:
    from nominee.lab.vpa.shell import Step
    from nominee.machinery.client.api_client import Client

_DEFAULTS = Policy()
_fraction = click.FloatRange(min=0, max=1)


@click.command()
@click.option(
    "--trace",
    "trace_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="The emulated usage: a .csv file, else YAML.",
)
@click.option("-l", "--selector", required=True, help="Label selector of the pods.")
@click.option("-n", "--namespace", default="default", show_default=True)
@directory_option
@click.option(
    "--interval", type=Seconds(), default=60.0, show_default=True, help="Seconds between two rounds."
)
@click.option("--duration", type=Seconds(), help="Stop after this many seconds.  [default: run until Ctrl-C]")
@click.option(
    "--deferred-timeout",
    "deferred_timeout_seconds",
    type=Seconds(),
    default=_DEFAULTS.deferred_timeout_seconds,
    show_default=True,
    help="Evict a pod whose resize is Deferred for longer.",
)
@click.option(
    "--in-progress-timeout",
    "in_progress_timeout_seconds",
    type=Seconds(),
    default=_DEFAULTS.in_progress_timeout_seconds,
    show_default=True,
    help="Evict a pod whose resize is in progress for longer.",
)
@click.option(
    "--min-replicas",
    type=click.IntRange(min=1),
    default=_DEFAULTS.min_replicas,
    show_default=True,
    help="Leave a controller's pods alone if fewer are live.",
)
@click.option(
    "--eviction-tolerance",
    type=_fraction,
    default=_DEFAULTS.eviction_tolerance,
    show_default=True,
    help="The fraction of a controller's replicas that may be disrupted at once.",
)
@click.option(
    "--update-threshold",
    type=_fraction,
    default=_DEFAULTS.update_threshold,
    show_default=True,
    help="The relative difference between requests and target from which on a pod is resized.",
)
@click.option(
    "--margin",
    type=click.FloatRange(min=0),
    default=_DEFAULTS.margin,
    show_default=True,
    help="The target is the usage and this fraction of it.",
)
@output_option("table", "json")
def vpa(
    trace_file: Path,
    selector: str,
    namespace: str,
    directory: Path,
    interval: float,
    duration: float | None,
    min_replicas: int,
    output: str,
    **limits: float,
) -> None:
    """Resize pods in place from an emulated usage trace, as VPA's updater in mode InPlaceOrRecreate does.

    Each round compares the pods' requests with the trace's usage at that time and patches the subresource
    `resize`. A pod is evicted instead if its resize is Infeasible, fails, is refused, or takes longer than
    its timeout. The trace is a list of samples with `at` (a duration), `container` (optional), `cpu` and
    `memory`; a sample holds until the next one. With -o json each step is a line. See docs/vpa.md.
    """
    # 20 ms that --help and completion would pay.
    from nominee.lab.vpa.trace import TraceError, parse_trace

    try:
        trace = parse_trace(trace_file.read_text(), is_csv=trace_file.suffix == ".csv")
    except (TraceError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{trace_file}: {error}", param_hint="'--trace'") from None
    # 200 ms that --help and completion would pay.
    from nominee.lab.vpa.shell import Shell
    from nominee.lab.vpa.updater import Updater
    from nominee.machinery.runtime.clock import SystemClock
    from nominee.session import converse

    async def work(client: Client) -> None:
        shell = Shell(
            client,
            SystemClock(),
            Updater(Policy(min_replicas=min_replicas, **limits)),
            trace,
            namespace=namespace,
            selector=selector,
            report=_as_json if output == "json" else _as_text,
        )
        await shell.run(interval, duration)

    converse(directory, work)


def _as_json(step: Step) -> None:
    click.echo(json.dumps(step.document))


def _as_text(step: Step) -> None:
    decision = step.decision
    targets = "; ".join(
        f"{c.name}: " + ", ".join(f"{name}={text}" for name, text in c.requests.items())
        for c in decision.containers
    )
    more = f" -> {targets}" if targets else ""
    failed = f" (failed: {step.error})" if step.error else ""
    head = f"{step.at_seconds:7.1f}s  {decision.action.value:<6}  {decision.pod}"
    click.echo(f"{head}  {decision.reason}{more}{failed}")
