"""`python -m nominee.autoscaler --dir D`: the cluster autoscaler as a process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from nominee.autoscaler import options as flags
from nominee.autoscaler.cloud.node_groups import NodeGroupError, load
from nominee.autoscaler.options import Compat, Options
from nominee.autoscaler.planning.scale_up import expander
from nominee.autoscaler.shell.process import run_autoscaler, run_with_cloud
from nominee.autoscaler.shell.provider import CloudConfig
from nominee.machinery.process.component import Process, component_command
from nominee.machinery.wire.values.scalars import format_duration


def _shown(name: str, value: object) -> str:
    """Format a default as it would be typed."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, flags.Range):
        return f"{value.min}:{value.max}"
    if isinstance(value, tuple):
        return ",".join(value)
    return format_duration(round(value * 1e9)) if flags.is_duration(name) else str(value)  # type: ignore[operator]


def _option(name: str) -> Callable[[Any], Any]:
    def read(_: click.Context, param: click.Parameter, text: str | None) -> object:
        if text is None:
            return None
        try:
            value = flags.read(name, text)
            if name == "expander":
                expander.check(text)
        except ValueError as error:
            raise click.BadParameter(str(error), param=param) from None
        return value

    return click.option(
        flags.flag(name),
        name,
        default=None if name == "compat" else _shown(name, getattr(Options(), name)),
        callback=read,
        help=flags.HELP.get(name),
        metavar="|".join(Compat) if name == "compat" else None,
    )


def _all_options(command: Callable[..., None]) -> Callable[..., None]:
    for field in reversed(fields(Options)):
        command = _option(field.name)(command)
    return command


@component_command("autoscaler")
@click.option(
    "--cloud-config",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="File with the provider's address; default: the address in DIR/run/cloud.json.",
)
@click.option(
    "--node-groups",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="Run the built-in cloud in this process, with these node groups.",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=False,
    show_default=True,
    help="Run loops only while holding the lease kube-system/cluster-autoscaler (upstream's default is on).",
)
@_all_options
def main(
    process: Process,
    cloud_config: Path | None,
    node_groups: Path | None,
    leader_elect: bool,
    **values: Any,
) -> None:
    """Run the cluster autoscaler: add nodes for pending pods, and delete nodes that are not needed."""
    try:
        cloud = CloudConfig.read(cloud_config) if cloud_config is not None else None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--cloud-config") from None
    values["compat"] = values["compat"] or Compat.of(process.version)
    options = Options(**values)
    if node_groups is None:
        process.run(lambda: run_autoscaler(process, options, cloud, leader_elect=leader_elect))
        return
    if leader_elect:
        raise click.UsageError("--node-groups runs the cloud in this process, which cannot be one of several")
    if cloud is not None:
        raise click.UsageError("--node-groups and --cloud-config configure two providers; use one of them")
    try:
        groups = load(node_groups)
    except NodeGroupError as error:
        raise click.BadParameter(str(error), param_hint="--node-groups") from None
    process.run(lambda: run_with_cloud(process, options, groups))


if __name__ == "__main__":
    main()
