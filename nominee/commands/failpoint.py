"""`nominee failpoint COMPONENT [NAME [ACTION]]`."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import click

from machinery.process.serving_client import HttpError, request
from nominee.commands.common import directory_option, echo_json, output_option, serving_port
from nominee.completion.candidates import ACTIONS, completing, failpoints_of_argument, process_names
from nominee.printing.tables import table


@click.command()
@click.argument("component", shell_complete=process_names)
@click.argument("name", required=False, shell_complete=failpoints_of_argument)
@click.argument("action", required=False, shell_complete=completing(lambda _: ACTIONS))
@directory_option
@output_option("table", "json")
def failpoint(component: str, name: str | None, action: str | None, directory: Path, output: str) -> None:
    """List or arm failpoints of a process.

    ACTION is `off`, `crash`, `error("text")`, `error(503)`, `sleep(MS)` or `pause`, optionally after `N*`
    (N times) or `P%` (with that probability); `->` chains actions. Example: nominee failpoint scheduler
    scheduler.bind.before '2*sleep(100)->crash'
    """
    if component == "etcd":
        raise click.ClickException("etcd has no failpoints")
    port = serving_port(directory, component)
    try:
        if name is not None and action is not None:
            answer = request(port, f"/failpoints/{quote(name)}", method="PUT", body=action)
        else:
            answer = request(port, "/failpoints")
    except HttpError as error:
        raise click.ClickException(str(error)) from None
    if answer.status >= 400:
        raise click.ClickException(f"{component}: {answer.text.strip()}")
    if name is not None and action is not None:
        click.echo(f"{name} is {action}")
        return
    _list(answer.text, component, name, output)


def _list(text: str, component: str, name: str | None, output: str) -> None:
    points = json.loads(text)
    if name is not None:
        found = [point for point in points if point["name"] == name]
        if not found:
            known = ", ".join(point["name"] for point in points) or "none"
            raise click.ClickException(f"{component} has no failpoint {name!r}; it has {known}")
        points = found
    if output == "json":
        echo_json(points)
        return
    rows = [
        [p["name"], p["action"] or "off", str(p["hits"]), str(p["fired"]), str(p["waiting"])] for p in points
    ]
    for line in table(["NAME", "ACTION", "HITS", "FIRED", "WAITING"], rows):
        click.echo(line)
