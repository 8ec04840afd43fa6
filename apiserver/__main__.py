"""`python -m nominee.apiserver --dir D`: the API server as a process."""

from __future__ import annotations

from pathlib import Path

import click

from nominee.apiserver.access.options import AccessOptions, access_options
from nominee.machinery.process.component import Process, component_command
from nominee.machinery.process.option_types import Duration, EtcdServers

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


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
    type=_FILE,
    default=None,
    help="Connect to etcd with TLS; it must have a certificate of this authority.",
)
@click.option("--etcd-certfile", type=_FILE, default=None, help="Client certificate for etcd.")
@click.option("--etcd-keyfile", type=_FILE, default=None, help="Key of that certificate.")
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
    multiple=True,
    metavar="NAME,...",
    help="Admission plugins to enable in addition to the default ones. Repeatable.",
)
@click.option(
    "--disable-admission-plugins",
    multiple=True,
    metavar="NAME,...",
    help="Admission plugins to disable. Repeatable.",
)
@click.option("--event-ttl", default="1h", type=Duration(), help="How long events are kept.")
@click.option(
    "--etcd-compaction-interval",
    default="5m",
    type=Duration(),
    help="How often etcd's history is dropped; 0 keeps it.",
)
@click.option(
    "--max-requests-inflight",
    type=click.IntRange(min=0),
    default=400,
    show_default=True,
    help="Concurrent read requests; priority levels share the sum of this and the next option.",
)
@click.option(
    "--max-mutating-requests-inflight",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="Concurrent mutating requests.",
)
@click.option(
    "--enable-priority-and-fairness",
    type=bool,
    default=True,
    show_default=True,
    help="Queue requests by priority level and flow, instead of rejecting those above the two limits.",
)
@click.option(
    "--allow-nominated-node-name-of-deferred-resizes",
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
def main(
    process: Process,
    etcd_servers: str,
    etcd_cafile: Path | None,
    etcd_certfile: Path | None,
    etcd_keyfile: Path | None,
    grpc_address: str,
    rest_address: str,
    enable_admission_plugins: tuple[str, ...],
    disable_admission_plugins: tuple[str, ...],
    event_ttl: float,
    etcd_compaction_interval: float,
    max_requests_inflight: int,
    max_mutating_requests_inflight: int,
    enable_priority_and_fairness: bool,
    allow_nominated_node_name_of_deferred_resizes: bool,
    apiserver_count: int,
    access: AccessOptions,
) -> None:
    """Run the API server: Kubernetes objects on etcd, over gRPC and REST."""
    from nominee.apiserver.process.options import Options
    from nominee.apiserver.process.run import check_options, run_apiserver

    options = Options(
        etcd_servers=etcd_servers,
        etcd_ca=etcd_cafile,
        etcd_certificate=etcd_certfile,
        etcd_key=etcd_keyfile,
        grpc_address=grpc_address,
        rest_address=rest_address,
        enabled_admission=_names(enable_admission_plugins),
        disabled_admission=_names(disable_admission_plugins),
        event_ttl_seconds=int(event_ttl),
        compaction_seconds=etcd_compaction_interval,
        requests_in_flight=max_requests_inflight,
        mutating_requests_in_flight=max_mutating_requests_inflight,
        priority_and_fairness=enable_priority_and_fairness,
        access=access,
        nominates_deferred_resizes=allow_nominated_node_name_of_deferred_resizes,
    )
    process.one_per_directory = apiserver_count == 1
    process.run(lambda: run_apiserver(process, options), check=lambda: check_options(options))


def _names(texts: tuple[str, ...]) -> frozenset[str]:
    return frozenset(part.strip() for text in texts for part in text.split(",") if part.strip())


if __name__ == "__main__":
    main()
