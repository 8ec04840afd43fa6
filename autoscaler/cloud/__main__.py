"""`python -m autoscaler.cloud --dir D --node-groups FILE`: the built-in cloud as a process."""

from __future__ import annotations

from pathlib import Path

import click

from autoscaler.cloud.node_groups import NodeGroupError, load
from autoscaler.cloud.process import run_cloud
from machinery.process.component import Process, component_command


@component_command("cloud")
@click.option(
    "--node-groups",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="YAML file with the node groups; without it there are none.",
)
@click.option(
    "--grpc-address", default="127.0.0.1:0", metavar="HOST:PORT", help="Where to serve the protocol."
)
def main(process: Process, node_groups: Path | None, grpc_address: str) -> None:
    """Machines on order, behind the autoscaler's external provider protocol."""
    try:
        groups = load(node_groups)
    except NodeGroupError as error:
        raise click.BadParameter(str(error), param_hint="--node-groups") from None
    process.run(lambda: run_cloud(process, groups, grpc_address))


if __name__ == "__main__":
    main()
