"""`nominee queue`: the scheduler's queues, waiting and binding pods, and nominations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from nominee.commands.cluster.leader import leading_port
from nominee.commands.common import directory_option, echo_json, output_option
from nominee.machinery.printing.tables import table
from nominee.machinery.process.serving_port.serving_client import HttpError, request

_QUEUES = ("active", "backoff", "unschedulable", "gated")
_ON_THE_WAY = ("waiting_on_permit", "binding")


@click.command()
@directory_option
@click.option("--scheduler", default="scheduler", show_default=True, help="The scheduler to ask.")
@output_option("table", "json")
def queue(directory: Path, scheduler: str, output: str) -> None:
    """Show pending pods and nominations.

    A pod is in the active, backoff, unschedulable or gated queue, waits on Permit, or is being bound. Of
    several schedulers the leader is asked, unless --scheduler names one, as scheduler-1.
    """
    name, port = leading_port(directory, scheduler)
    try:
        answer = request(port, "/debug/queue")
    except HttpError as error:
        raise click.ClickException(str(error)) from None
    if answer.status != 200:
        raise click.ClickException(f"{name} answers {answer.status}: {answer.text.strip()}")
    document = json.loads(answer.text)
    if output == "json":
        echo_json(document)
        return
    for line in _lines(document):
        click.echo(line)


def _lines(document: Mapping[str, Any]) -> list[str]:
    nominated = {pod: node for node, pods in document.get("nominated", {}).items() for pod in pods}
    rows = [
        [
            name,
            pod["pod"],
            str(pod.get("attempts", "")),
            ",".join(pod.get("plugins") or ()) or "-",
            str(pod.get("since") or "-"),
            nominated.pop(pod["pod"], "-"),
        ]
        for name in _QUEUES
        for pod in document.get(name, ())
    ]
    rows += [
        [name, pod["pod"], "", "-", "-", f"{pod['node']} (chosen)"]
        for name in _ON_THE_WAY
        for pod in document.get(name, ())
    ]
    rows += [["nominated", pod, "", "-", "-", node] for pod, node in nominated.items()]
    if not rows:
        return ["no pod is pending"]
    return table(["QUEUE", "POD", "ATTEMPTS", "PLUGINS", "SINCE", "NODE"], rows)
