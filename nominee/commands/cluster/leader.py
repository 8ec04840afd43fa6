"""The process to ask where a component has several: the one that leads."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from nominee.commands.common import serving_ports
from nominee.machinery.process.serving_port.serving_client import HttpError, ServingPort, request

_SECONDS_MAX: Final = 2.0
"""A process that is paused does not answer."""


def leading_port(directory: Path, component: str) -> tuple[str, ServingPort]:
    """Return the name and the serving port of a running process; of several, of the one that leads.

    If there are several, a line on standard error has the name.

    Raises:
        click.ClickException: the process does not run, has no serving port, or does not answer.
    """
    ports = serving_ports(directory, component, allows_paused=True)
    if len(ports) == 1:
        return next(iter(serving_ports(directory, component).items()))
    standbys = []
    for name, port in ports.items():
        leads = _leads(port)
        if leads:
            click.echo(f"{name} leads", err=True)
            return name, port
        standbys += [name] if leads is False else []
    if not standbys:
        raise click.ClickException(f"none of {', '.join(ports)} answers; `nominee status` shows their states")
    chosen = standbys[0]
    click.echo(f"warning: none of {', '.join(ports)} leads; this is {chosen}", err=True)
    return chosen, ports[chosen]


def _leads(port: ServingPort) -> bool | None:
    """Return whether a process has the lease of leader election; None if it does not answer."""
    # 200 ms that --help and completion would pay.
    from prometheus_client.parser import text_string_to_metric_families

    from nominee.machinery.process.leading import MASTER_STATUS

    try:
        text = request(port, "/metrics", timeout_seconds=_SECONDS_MAX).text
        families = [each for each in text_string_to_metric_families(text) if each.name == MASTER_STATUS]
    except (HttpError, ValueError):
        return None
    return any(sample.value == 1 for family in families for sample in family.samples)
