"""`nominee bench`: the options of the benchmarks and how results are shown."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from nominee.commands.common import echo_json, output_option
from nominee.printing.tables import table

_count = click.IntRange(min=1)


@click.group()
def bench() -> None:
    """Measure the control plane on real processes."""


@bench.command()
@click.option("--nodes", type=_count, default=5000, show_default=True)
@click.option(
    "--init-pods", type=click.IntRange(min=0), default=1000, show_default=True, help="Scheduled before."
)
@click.option("--pods", type=_count, default=1000, show_default=True, help="Measured.")
@click.option(
    "--concurrency", type=_count, default=30, show_default=True, help="Creations under way at once."
)
@click.option("--emulated-version", multiple=True, metavar="COMPONENT=1.NN,...")
@click.option("--feature-gates", multiple=True, metavar="COMPONENT=Gate=bool,...")
@click.option("--arg", "arguments", multiple=True, metavar="COMPONENT=--option=value")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the state here.",
)
@output_option("table", "json")
def scheduling(
    nodes: int,
    init_pods: int,
    pods: int,
    concurrency: int,
    emulated_version: tuple[str, ...],
    feature_gates: tuple[str, ...],
    arguments: tuple[str, ...],
    directory: Path | None,
    output: str,
) -> None:
    """Pods scheduled per second, as scheduler_perf's SchedulingBasic measures it.

    Starts etcd, API server and scheduler in a directory of their own, and ends them afterwards.
    """
    from nominee.bench.processes import BenchError
    from nominee.bench.scheduling import Settings, run

    room = nodes * 40
    if init_pods + pods > room:
        raise click.UsageError(f"--pods: {nodes} nodes have room for {room} pods; take more --nodes")
    up_options = [
        *(word for text in emulated_version for word in ("--emulated-version", text)),
        *(word for text in feature_gates for word in ("--feature-gates", text)),
        *(word for text in arguments for word in ("--arg", text)),
    ]
    settings = Settings(nodes=nodes, init_pods=init_pods, pods=pods, concurrency=concurrency)
    with tempfile.TemporaryDirectory(prefix="nominee-bench-") as temporary:
        try:
            report = run((directory or Path(temporary)).absolute(), settings, up_options)
        except (BenchError, TimeoutError) as error:
            raise click.ClickException(str(error)) from None
        except BaseExceptionGroup as group:
            raise click.ClickException("; ".join(str(error) for error in group.exceptions)) from group
    if output == "json":
        echo_json(report)
    else:
        _print(report)


def _print(report: Mapping[str, Any]) -> None:
    settings, throughput, latency = (
        report["settings"],
        report["throughput"],
        report["attemptLatencyMilliseconds"],
    )
    click.echo(
        f"{settings['pods']} pods on {settings['nodes']} nodes ({settings['init_pods']} pods before): "
        f"{throughput['average']} pods/s in {throughput['seconds']} s"
    )
    header = ["", "P50", "P90", "P95", "P99"]
    names = ("p50", "p90", "p95", "p99")
    rows = [
        ["pods/s in one-second samples", *(str(throughput[name]) for name in names)],
        ["scheduling attempt (ms)", *(str(latency[name]) for name in names)],
    ]
    for line in table(header, rows):
        click.echo(line)
    cpu = ", ".join(f"{name} {spent}" for name, spent in report["cpuMillisecondsPerPod"].items())
    click.echo(f"created {report['created']['podsPerSecond']} pods/s; processor ms a pod: {cpu}")
    memory = ", ".join(f"{name} {size}" for name, size in report["memory"]["pssMiB"].items())
    click.echo(f"memory (PSS, MiB): {memory}; together {report['memory']['sumMiB']}")
    on = report["machine"]
    click.echo(
        f"machine: {on['cores']} cores of {on['processor']}, {on['memoryMiB']} MiB, Linux {on['kernel']}, "
        f"Python {on['python']}; {on['busyElsewhere']:.0%} of it was busy with other things"
    )
