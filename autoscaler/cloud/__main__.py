"""`python -m nominee.autoscaler.cloud --dir D --node-groups FILE`: the built-in cloud as a process."""

from __future__ import annotations

from pathlib import Path

import click

from nominee.autoscaler.cloud.access import CloudTls
from nominee.autoscaler.cloud.node_groups import NodeGroupError, load
from nominee.autoscaler.cloud.process import run_cloud
from nominee.machinery.process.component import Process, component_command

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@component_command("cloud")
@click.option(
    "--node-groups",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="YAML file with the node groups; without it the cloud has no groups.",
)
@click.option(
    "--grpc-address", default="127.0.0.1:0", metavar="HOST:PORT", help="Where to serve the protocol."
)
@click.option("--tls-cert-file", type=_FILE, default=None, help="Serve TLS with this certificate.")
@click.option("--tls-private-key-file", type=_FILE, default=None, help="Key of that certificate.")
@click.option(
    "--client-ca-file", type=_FILE, default=None, help="Accept clients with a certificate of this authority."
)
def main(
    process: Process,
    node_groups: Path | None,
    grpc_address: str,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    client_ca_file: Path | None,
) -> None:
    """Run the built-in cloud provider, behind the autoscaler's external gRPC provider protocol."""
    try:
        groups = load(node_groups)
    except NodeGroupError as error:
        raise click.BadParameter(str(error), param_hint="--node-groups") from None
    files = (tls_cert_file, tls_private_key_file, client_ca_file)
    given = [file.read_bytes() for file in files if file is not None]
    if len(given) not in (0, len(files)):
        raise click.UsageError("--tls-cert-file, --tls-private-key-file and --client-ca-file go together")
    tls = CloudTls(*given) if given else None
    process.run(lambda: run_cloud(process, groups, grpc_address, tls, client_ca_file))


if __name__ == "__main__":
    main()
