"""`nominee bench`: the options of the benchmarks, and the output of their results."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from nominee.commands.common import (
    WritableDirectory,
    echo_json,
    end_as_by_ctrl_c,
    output_option,
    version_options,
)
from nominee.commands.pages import html_option, write_page

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
@click.option(
    "--apiservers",
    type=click.IntRange(1, 3),
    default=1,
    show_default=True,
    help="API servers: the scheduler asks the first, creators and watcher ask the last.",
)
@version_options
@click.option("--arg", "arguments", multiple=True, metavar="COMPONENT=--option=value")
@click.option("--insecure", is_flag=True, help="No TLS and authentication, as `nominee up --insecure`.")
@click.option(
    "--dir",
    "directory",
    type=WritableDirectory(),
    help="Use this state directory, and keep it.",
)
@html_option("Write a page of the results to this file, with a chart.")
@output_option("table", "json")
def scheduling(
    workload: str,
    nodes: int | None,
    init_pods: int | None,
    pods: int | None,
    concurrency: int,
    apiservers: int,
    emulated_version: tuple[str, ...],
    feature_gates: tuple[str, ...],
    arguments: tuple[str, ...],
    insecure: bool,
    directory: Path | None,
    html: Path | None,
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
        apiservers=apiservers,
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
    _show(report, html, output)


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
@html_option("Write a page of the results to this file, with a chart.")
@output_option("table", "json")
def watch(
    watchers: int,
    rate: int,
    pods: int,
    seconds: int,
    slow: int,
    arguments: tuple[str, ...],
    insecure: bool,
    html: Path | None,
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
    _show(report, html, output)


def _show(report: Mapping[str, Any], html: Path | None, output: str) -> None:
    # 100 ms that --help and completion would pay.
    from nominee.lab.bench.report import page, text

    if html is not None:
        write_page(html, page(report, ["nominee", *sys.argv[1:]]))
    if output == "json":
        echo_json(report)
    else:
        for line in text(report):
            click.echo(line)
