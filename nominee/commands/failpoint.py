"""`nominee failpoint COMPONENT [NAME [ACTION]]`."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import click

from nominee.commands.common import directory_option, echo_json, http_address, output_option
from nominee.http import HttpError, request


@click.command()
@click.argument("component")
@click.argument("name", required=False)
@click.argument("action", required=False)
@directory_option
@output_option("table", "json")
def failpoint(component: str, name: str | None, action: str | None, directory: Path, output: str) -> None:
    """List the failpoints of a running component, or arm one.

    ACTION is `off`, `crash`, `error("text")`, `error(503)`, `sleep(MS)`, `pause`, after an optional `N*` or
    `P%`, chained by `->`. Example: nominee failpoint scheduler scheduler.bind.before '2*sleep(100)->crash'
    """
    address = http_address(directory, component)
    try:
        if name is not None and action is not None:
            answer = request(address, f"/failpoints/{quote(name)}", method="PUT", body=action)
        else:
            answer = request(address, "/failpoints")
    except HttpError as error:
        raise click.ClickException(str(error)) from None
    if answer.status >= 400:
        raise click.ClickException(f"{component}: {answer.text.strip()}")
    if name is not None and action is not None:
        click.echo(f"{name} is {action}")
        return
    _list(answer.text, component, name, output)


def _list(text: str, component: str, name: str | None, output: str) -> None:
    points = _points(text)
    if name is not None:
        if name not in points:
            raise click.ClickException(f"{component} has no failpoint {name!r}; it has {', '.join(points)}")
        points = {name: points[name]}
    if output == "json":
        echo_json(points)
        return
    for point, action in points.items():
        click.echo(f"{point}={action}")


def _points(text: str) -> dict[str, str]:
    """Failpoints by name: `NAME=ACTION` lines, or a JSON object."""
    try:
        document = json.loads(text)
    except ValueError:
        lines = [line.partition("=") for line in text.splitlines() if line.strip()]
        return {name: action for name, _, action in lines}
    return {str(name): str(action) for name, action in document.items()}
