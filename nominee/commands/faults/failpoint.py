"""`nominee failpoint COMPONENT [NAME [ACTION]]`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from nominee.commands.common import directory_option, echo_json, output_option, serving_ports
from nominee.completion.candidates import ACTIONS, completing, failpoints_of_argument, process_names
from nominee.localcluster.components import UnknownComponentError, find_process
from nominee.localcluster.declared_failpoints import all_sentences
from nominee.localcluster.supervisor.directory import StateDirectory
from nominee.machinery.printing.tables import table
from nominee.machinery.process.serving_port.serving_client import HttpAnswer, HttpError, ServingPort, request

if TYPE_CHECKING:
    from nominee.localcluster.components import Component


@click.command()
@click.argument("component", required=False, shell_complete=process_names)
@click.argument("name", required=False, shell_complete=failpoints_of_argument)
@click.argument("action", required=False, shell_complete=completing(lambda _: ACTIONS))
@click.option(
    "--list", "list_only", is_flag=True, help="List failpoints and what they mean; needs no cluster."
)
@directory_option
@output_option("table", "json")
def failpoint(
    component: str | None, name: str | None, action: str | None, list_only: bool, directory: Path, output: str
) -> None:
    """List or arm failpoints of a process, or of all processes of a component.

    ACTION is `off`, `crash`, `error("text")`, `error(503)`, `sleep(MS)` or `pause`, optionally after `N*`
    (N times) or `P%` (with that probability); `->` chains actions. COMPONENT is a process, as kubelet-0 or
    scheduler-1, or all processes of a component. Example: nominee failpoint scheduler scheduler.bind.before
    '2*sleep(100)->crash'
    """
    if component == "etcd":
        raise click.ClickException("etcd has no failpoints")
    if component is None and not list_only:
        raise click.UsageError("name a component, or give --list")
    if list_only or (action is None and not _runs(directory, str(component))):
        _list_sentences(component, name, output)
        return
    ports = serving_ports(directory, str(component))
    if name is None or action is None:
        _list(
            {
                process: _named(json.loads(_ask(port, process, "/failpoints").text), process, name)
                for process, port in ports.items()
            },
            output,
        )
        return
    for process, port in ports.items():
        _ask(port, process, f"/failpoints/{quote(name)}", action)
        click.echo(f"{process}: {name} is {action}")


def _runs(directory: Path, component: str) -> bool:
    """Return whether the process runs; False also for a directory without a cluster."""
    known, process = _find(component)
    running = StateDirectory(directory).live_run_files()
    name = process or known.name
    return name in running or any(document.get("component") == name for document in running.values())


def _find(component: str) -> tuple[Component, str]:
    """Return the component of a name, and the process that it names or "".

    Raises:
        click.UsageError: there is no such component.
    """
    try:
        return find_process(component)
    except UnknownComponentError as error:
        raise click.UsageError(str(error)) from None


def _ask(port: ServingPort, process: str, path: str, action: str = "") -> HttpAnswer:
    try:
        answer = request(port, path, method="PUT" if action else "GET", body=action)
    except HttpError as error:
        raise click.ClickException(f"{process}: {error}") from None
    if answer.status >= 400:
        raise click.ClickException(f"{process}: {answer.text.strip()}")
    return answer


def _named(
    points: Sequence[Mapping[str, object]], component: str, name: str | None
) -> Sequence[Mapping[str, object]]:
    """Return the point of that name, or all without a name.

    Raises:
        click.ClickException: there is no such point; the message has the nearest names.
    """
    if name is None:
        return points
    found = [point for point in points if point["name"] == name]
    if not found:
        near = _near(name, (str(point["name"]) for point in points))
        raise click.ClickException(f"{component} has no failpoint {name!r}; there are {near}")
    return found


def _near(name: str, names: Iterable[str]) -> str:
    names = sorted(names)
    return ", ".join(get_close_matches(name, names, n=3) or names) or "none"


def _list(points: Mapping[str, Sequence[Mapping[str, object]]], output: str) -> None:
    """Print the points of running processes; with a column for the process if there are several."""
    sentences = all_sentences()
    rows = [
        {"process": process, **point, "description": sentences.get(str(point["name"]), "")}
        for process, found in points.items()
        for point in found
    ]
    if output == "json":
        echo_json(rows)
        return
    several = ("process",) if len(points) > 1 else ()
    keys = (*several, "name", "action", "hits", "fired", "waiting", "description")
    cells = [[str(row.get(key) or ("off" if key == "action" else 0)) for key in keys] for row in rows]
    for line in table([key.upper() for key in keys], cells):
        click.echo(line)


def _list_sentences(component: str | None, name: str | None, output: str) -> None:
    """Print the failpoints of a component, or of all, as they are declared."""
    prefix = f"{_find(component)[0].name}." if component is not None else ""
    points = [
        {"name": point, "description": sentence}
        for point, sentence in all_sentences().items()
        if point.startswith(prefix)
    ]
    found = _named(points, component or "Nominee", name)
    if output == "json":
        echo_json(list(found))
        return
    for line in table(
        ["NAME", "DESCRIPTION"], [[str(point["name"]), str(point["description"])] for point in found]
    ):
        click.echo(line)
