"""`nominee bench`: the options of the benchmarks, and the output of their results."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from nominee.commands.common import echo_json, end_as_by_ctrl_c, output_option, version_options
from nominee.machinery.printing.tables import table

_WORKLOADS = (
    "SchedulingBasic",
    "SchedulingNodeAffinity",
    "SchedulingPodAffinity",
    "SchedulingPodAntiAffinity",
    "TopologySpreading",
    "Unschedulable",
    "PreemptionBasic",
    "SchedulingWithResourceClaimTemplate",
    "DelayedBinding",
)  # not read from the table: its modules would be imported for every command
_count = click.IntRange(min=1)


@click.group()
def bench() -> None:
    """Run a benchmark on real processes."""


@bench.command()
@click.option(
    "--workload",
    type=click.Choice(_WORKLOADS, case_sensitive=False),
    default="SchedulingBasic",
    show_default=True,
    help="A workload of scheduler_perf. DelayedBinding: each pod's PreBind takes a second.",
)
@click.option("--nodes", type=_count, help="[default: the workload's, mostly 5000]")
@click.option("--init-pods", type=click.IntRange(min=0), help="Initial pods.  [default: the workload's]")
@click.option("--pods", type=_count, help="Measured pods.  [default: the workload's]")
@click.option(
    "--concurrency", type=_count, default=30, show_default=True, help="Concurrent requests that create pods."
)
@version_options
@click.option("--arg", "arguments", multiple=True, metavar="COMPONENT=--option=value")
@click.option("--insecure", is_flag=True, help="No TLS and authentication, as `nominee up --insecure`.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Use this state directory, and keep it.",
)
@output_option("table", "json")
def scheduling(
    workload: str,
    nodes: int | None,
    init_pods: int | None,
    pods: int | None,
    concurrency: int,
    emulated_version: tuple[str, ...],
    feature_gates: tuple[str, ...],
    arguments: tuple[str, ...],
    insecure: bool,
    directory: Path | None,
    output: str,
) -> None:
    """Measure scheduling throughput.

    The pods scheduled per second are measured as scheduler_perf measures them. The command starts etcd,
    API server and scheduler in a directory of their own, and stops them at the end.
    """
    # 160 ms that --help and completion would pay.
    from nominee.lab.bench.load.workloads import WORKLOADS
    from nominee.lab.bench.processes import BenchError
    from nominee.lab.bench.scheduling import SchedulingSettings, run
    from nominee.localcluster.own_cluster import ClusterStartError

    chosen = WORKLOADS[workload]
    settings = SchedulingSettings(
        workload=workload,
        nodes=chosen.nodes if nodes is None else nodes,
        init_pods=chosen.init_pods if init_pods is None else init_pods,
        pods=chosen.pods if pods is None else pods,
        concurrency=concurrency,
    )
    complaint = chosen.too_many(settings.nodes, settings.init_pods, settings.pods)
    if complaint:
        raise click.UsageError(complaint)
    up_options = [
        *(word for text in emulated_version for word in ("--emulated-version", text)),
        *(word for text in feature_gates for word in ("--feature-gates", text)),
        *(word for text in arguments for word in ("--arg", text)),
        *(["--insecure"] if insecure else []),
    ]
    end_as_by_ctrl_c()
    with tempfile.TemporaryDirectory(prefix="nominee-bench-") as temporary:
        try:
            report = run((directory or Path(temporary)).absolute(), settings, up_options)
        except (BenchError, ClusterStartError, TimeoutError) as error:
            raise click.ClickException(str(error)) from None
        except BaseExceptionGroup as group:
            raise click.ClickException("; ".join(str(error) for error in group.exceptions)) from group
    if output == "json":
        echo_json(report)
    else:
        _print(report)


@bench.command()
@click.option("--watchers", type=_count, default=100, show_default=True, help="Lists of each encoding.")
@click.option("--rate", type=_count, default=100, show_default=True, help="Pods changed per second.")
@click.option("--pods", type=_count, default=5000, show_default=True)
@click.option("--seconds", type=_count, default=20, show_default=True, help="Watchers of each encoding.")
@click.option(
    "--slow",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Watchers that never read their events.",
)
@click.option("--arg", "arguments", multiple=True, metavar="COMPONENT=--option=value")
@click.option("--insecure", is_flag=True, help="No TLS and authentication, as `nominee up --insecure`.")
@output_option("table", "json")
def watch(
    watchers: int,
    rate: int,
    pods: int,
    seconds: int,
    slow: int,
    arguments: tuple[str, ...],
    insecure: bool,
    output: str,
) -> None:
    """Measure lists and watches.

    The command measures lists of many pods, and how long changes take to reach many watchers. It starts
    etcd and API server in a directory of their own, and stops them at the end.
    """
    # 160 ms that --help and completion would pay.
    from nominee.lab.bench.processes import BenchError
    from nominee.lab.bench.watches.watch import WatchSettings, run
    from nominee.localcluster.own_cluster import ClusterStartError

    settings = WatchSettings(watchers=watchers, rate=rate, pods=pods, seconds=seconds, slow=slow)
    up_options = [
        *(["--insecure"] if insecure else []),
        *(word for text in arguments for word in ("--arg", text)),
    ]
    end_as_by_ctrl_c()
    with tempfile.TemporaryDirectory(prefix="nominee-bench-") as temporary:
        try:
            report = run(Path(temporary), settings, up_options)
        except (BenchError, ClusterStartError, TimeoutError) as error:
            raise click.ClickException(str(error)) from None
    if output == "json":
        echo_json(report)
    else:
        _print_watch(report)


def _print_watch(report: Mapping[str, Any]) -> None:
    settings = report["settings"]
    click.echo(f"lists of {settings['pods']} pods (ms, medians)")
    header = ["", "MB", "first byte", "whole", "chunks of 500", "server MiB"]
    rows = [
        [
            name,
            *(str(found[key]) for key in ("megabytes", "firstByteMilliseconds", "wholeMilliseconds")),
            str(found["chunksOf500Milliseconds"] or ""),
            " to ".join(map(str, found["memoryMiB"])),
        ]
        for name, found in report["lists"].items()
    ]
    for line in table(header, rows):
        click.echo(line)
    click.echo(
        f"{settings['watchers']} watchers, {settings['rate']} changes/s, {settings['slow']} that never read"
    )
    header = ["", "changes/s", "p50 ms", "p99 ms", "max ms", "missed", "server us/event", "server MiB"]
    rows = []
    for form, found in report["watches"].items():
        delays = found["delayMilliseconds"]
        rows.append(
            [
                form,
                str(found["changesPerSecond"]),
                *(str(delays[name]) for name in ("p50", "p99", "p100")),
                str(found["expected"] - found["events"]),
                str(found["cpuMicrosecondsPerEvent"]),
                " to ".join(str(found["memoryMiB"][name]) for name in ("before", "after")),
            ]
        )
    for line in table(header, rows):
        click.echo(line)
    _print_machine(report["machine"])


def _print(report: Mapping[str, Any]) -> None:
    settings, throughput, latency = (
        report["settings"],
        report["throughput"],
        report["attemptLatencyMilliseconds"],
    )
    click.echo(
        f"{settings['workload']}: {settings['pods']} pods on {settings['nodes']} nodes "
        f"({settings['init_pods']} pods before): "
        f"{throughput['average']} pods/s in {throughput['seconds']} s"
    )
    for line in reference_lines(report["reference"]):
        click.echo(line)
    header = ["", "P50", "P90", "P95", "P99"]
    names = ("p50", "p90", "p95", "p99")
    rows = [
        ["pods/s in one-second samples", *(str(throughput[name]) for name in names)],
        ["scheduling attempt (ms)", *(str(latency[name]) for name in names)],
    ]
    for line in table(header, rows):
        click.echo(line)
    algorithm = report["schedulingAlgorithm"]
    click.echo(
        f"{algorithm['attemptsPerSecond']} attempts/s, "
        f"{algorithm['meanMilliseconds']} ms of scheduling algorithm each on average"
    )
    cpu = ", ".join(f"{name} {spent}" for name, spent in report["cpuMillisecondsPerPod"].items())
    click.echo(f"created {report['created']['podsPerSecond']} pods/s; processor ms a pod: {cpu}")
    memory = ", ".join(f"{name} {size}" for name, size in report["memory"]["pssMiB"].items())
    click.echo(f"memory (PSS, MiB): {memory}; together {report['memory']['sumMiB']}")
    _print_machine(report["machine"])


def reference_lines(reference: Mapping[str, Mapping[str, float] | None]) -> Iterator[str]:
    """Yield the figures of the real component, if there are any of this size."""
    for name, found in reference.items():
        if found is not None:
            figure = " to ".join(dict.fromkeys(f"{found[key]:g}" for key in ("lowest", "highest")))
            yield f"{name} at this size on two cores: {figure} pods/s"


def _print_machine(on: Mapping[str, Any]) -> None:
    click.echo(
        f"machine: {on['cores']} cores of {on['processor']}, {on['memoryMiB']} MiB, Linux {on['kernel']}, "
        f"Python {on['python']}; {on['busyElsewhere']:.0%} of it used by other processes"
    )
