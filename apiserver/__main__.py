"""`python -m nominee.apiserver --dir D`: the API server as a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nominee.apiserver.access.options import access_options
from nominee.machinery.process.component import Process, component_command
from nominee.machinery.process.option_types import Duration, EtcdServers

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _names(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> frozenset[str]:
    return frozenset(part.strip() for text in texts for part in text.split(",") if part.strip())


@component_command("apiserver", one_per_directory=True)
@click.option(
    "--etcd-servers",
    default="",
    type=EtcdServers(),
    metavar="HOST:PORT,...",
    help="Etcd's members; default: from DIR/run/etcd.json.",
)
@click.option(
    "--etcd-cafile",
    "etcd_ca",
    type=_FILE,
    default=None,
    help="Connect to etcd with TLS; it must have a certificate of this authority.",
)
@click.option(
    "--etcd-certfile", "etcd_certificate", type=_FILE, default=None, help="Client certificate for etcd."
)
@click.option("--etcd-keyfile", "etcd_key", type=_FILE, default=None, help="Key of that certificate.")
@click.option("--grpc-address", default="127.0.0.1:0", metavar="HOST:PORT", help="Address of the gRPC port.")
@click.option(
    "--rest-address",
    default="127.0.0.1:0",
    metavar="HOST:PORT",
    help="Address of the REST port; port 0: that of the last start, or a free one. Without --tls-cert-file"
    " it is plain HTTP, every client is an administrator, and the address must be loopback.",
)
@click.option(
    "--enable-admission-plugins",
    "enabled_admission",
    multiple=True,
    callback=_names,
    metavar="NAME,...",
    help="Admission plugins to enable in addition to the default ones. Repeatable.",
)
@click.option(
    "--disable-admission-plugins",
    "disabled_admission",
    multiple=True,
    callback=_names,
    metavar="NAME,...",
    help="Admission plugins to disable. Repeatable.",
)
@click.option(
    "--event-ttl", "event_ttl_seconds", default="1h", type=Duration(), help="How long events are kept."
)
@click.option(
    "--etcd-compaction-interval",
    "compaction_seconds",
    default="5m",
    type=Duration(),
    help="How often etcd's history is dropped; 0 keeps it.",
)
@click.option(
    "--max-requests-inflight",
    "requests_in_flight",
    type=click.IntRange(min=0),
    default=400,
    show_default=True,
    help="Concurrent read requests; priority levels share the sum of this and the next option.",
)
@click.option(
    "--max-mutating-requests-inflight",
    "mutating_requests_in_flight",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="Concurrent mutating requests.",
)
@click.option(
    "--enable-priority-and-fairness",
    "priority_and_fairness",
    type=bool,
    default=True,
    show_default=True,
    help="Queue requests by priority level and flow, instead of rejecting those above the two limits.",
)
@click.option(
    "--allow-nominated-node-name-of-deferred-resizes",
    "nominates_deferred_resizes",
    is_flag=True,
    help="An option of Nominee only: status.nominatedNodeName may be set on a bound pod whose resize is"
    " deferred. The scheduler's --resize-preemption-tracking=nominated-node-name needs it.",
)
@click.option(
    "--apiserver-count",
    type=click.IntRange(1, 3),
    default=1,
    show_default=True,
    help="How many API servers share this directory and etcd, each with a --name of its own.",
)
@access_options
def main(process: Process, apiserver_count: int, **given: Any) -> None:
    """Run the API server: Kubernetes objects on etcd, over gRPC and REST."""
    from nominee.apiserver.process.options import Options
    from nominee.apiserver.process.run import check_options, run_apiserver

    options = Options(**given)
    process.one_per_directory = apiserver_count == 1
    process.run(lambda: run_apiserver(process, options), check=lambda: check_options(options))


if __name__ == "__main__":
    main()
