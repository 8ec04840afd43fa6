"""`nominee fault COMPONENT [ACTION]` and `nominee clock COMPONENT [OFFSET]`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import click

from nominee.commands.common import directory_option, echo_json, output_option, serving_ports
from nominee.completion.candidates import FAULT_ACTIONS, completing, fault_kinds, fault_methods, process_names
from nominee.localcluster.etcd import links as etcd_links
from nominee.localcluster.supervisor.directory import JsonObject
from nominee.machinery.printing.tables import table
from nominee.machinery.process.serving_port.serving_client import HttpError, request

ALL = "*"


def ask(directory: Path, component: str, path: str, document: object = None) -> dict[str, JsonObject]:
    """Return the answer of each process of a component to GET, or to PUT of a document, by its name.

    Raises:
        click.ClickException: no such process runs, or one refused.
    """
    if component == "etcd":
        raise click.ClickException("etcd has no faults and no clock: set the fault at the API server")
    method, body = ("GET", "") if document is None else ("PUT", json.dumps(document))
    answers = {}
    for name, port in serving_ports(directory, component).items():
        try:
            answer = request(port, path, method=method, body=body)
        except HttpError as error:
            raise click.ClickException(f"{name}: {error}") from None
        if answer.status >= 400:
            raise click.ClickException(f"{name}: {answer.text.strip()}")
        answers[name] = json.loads(answer.text)
    return answers


@click.command()
@click.argument("component", shell_complete=process_names)
@click.argument("action", required=False, shell_complete=completing(lambda _: FAULT_ACTIONS))
@click.option("--to", default=ALL, shell_complete=process_names, help="The server: apiserver, etcd or cloud.")
@click.option(
    "--method", default=ALL, shell_complete=completing(fault_methods), help="A gRPC method, Bind or Evict."
)
@click.option("--kind", default=ALL, shell_complete=completing(fault_kinds), help="The kind of the objects.")
@directory_option
@output_option("table", "json")
def fault(
    component: str, action: str | None, to: str, method: str, kind: str, directory: Path, output: str
) -> None:
    """List or set faults of the calls that a process makes to other processes.

    Of an etcd member: `cut` or `off` the links to other members (--to etcd-1).

    ACTION is `cut`, `cut-response`, `delay(MS)`, `drop-request` or `drop-response`; for watches also `hold`,
    `merge` or `relist`; optionally after `N*` (N times) or `P%` (with that probability); `->` chains actions.
    `off` removes the faults that --to, --method and --kind select. Example: nominee fault scheduler
    drop-response --method Bind
    """
    selection = {"to": to, "method": method, "kind": kind}
    if component.partition("-")[0] == "etcd":
        _of_etcd(directory, component, action, selection, output)
        return
    if action is None:
        _list(ask(directory, component, "/faults"), selection, output)
        return
    for name in ask(directory, component, "/faults", {**selection, "action": action}):
        click.echo(f"{name}: {_named(selection) or 'all calls'}: {action}")


def _named(selection: Mapping[str, str]) -> str:
    return " ".join(f"{name} {value}" for name, value in selection.items() if value != ALL)


def _of_etcd(
    directory: Path, member: str, action: str | None, selection: Mapping[str, str], output: str
) -> None:
    """List, cut or heal the links of an etcd member.

    Raises:
        click.ClickException: it is not possible.
    """
    if selection["method"] != ALL or selection["kind"] != ALL:
        raise click.ClickException("a link between etcd members is cut as a whole: no --method, no --kind")
    if action is None:
        with _refusing():
            cut = etcd_links.links(directory, member)
        rows: list[dict[str, object]] = [
            {"process": name, **selection, "to": other, "action": etcd_links.CUT}
            for name, other in cut
            if selection["to"] in (ALL, other)
        ]
        _print(rows, {}, output)
        return
    with _refusing():
        etcd_links.put(directory, member, selection["to"], action)
    click.echo(f"{member}: {_named(selection) or 'all links'}: {action}")


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except etcd_links.LinkError as error:
        raise click.ClickException(str(error)) from None


def _list(answers: Mapping[str, JsonObject], selection: Mapping[str, str], output: str) -> None:
    """Print the selected faults, and the calls of each process."""
    rows = [
        {"process": name, **rule}
        for name, answer in answers.items()
        for rule in answer["rules"]
        if all(value == ALL or rule[key] == value for key, value in selection.items())
    ]
    _print(rows, {name: answer["servers"] for name, answer in answers.items()}, output)


def _print(
    rows: list[dict[str, object]], servers: Mapping[str, Mapping[str, list[str]]], output: str
) -> None:
    """Print rules, and by process the servers and methods that it calls."""
    if output == "json":
        echo_json({"rules": rows, "servers": servers})
        return
    keys = ("process", "to", "method", "kind", "action", "fired", "waiting")
    lines = [[str(row.get(key, "")) for key in keys] for row in rows]
    for line in table([key.upper() for key in keys], lines):
        click.echo(line)
    for name, called in servers.items():
        for server, methods in called.items():
            click.echo(f"{name} calls {server}: {', '.join(methods)}")


# So that -1h is an offset, and not an option -1 with the option -h.
@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": ["--help"]})
@click.argument("component", shell_complete=process_names)
@click.argument("offset", required=False)
@directory_option
@output_option("table", "json")
def clock(component: str, offset: str | None, directory: Path, output: str) -> None:
    """Show or shift the wall clock of a process.

    OFFSET is the difference to the machine's clock, in seconds or as 1h30m; +0 ends the shift. Timers and
    timeouts are not affected. Example: nominee clock controllers +60
    """
    document = None if offset is None else {"offsetSeconds": _seconds(offset)}
    answers = ask(directory, component, "/clock", document)
    if output == "json":
        echo_json(answers)
        return
    for name, answer in answers.items():
        click.echo(f"{name}: {answer['now']} ({answer['offsetSeconds']:+g} s)")


def _seconds(text: str) -> float:
    """Read `+30`, `-1.5` or `+1h30m`."""
    # 9 ms that --help and completion would pay.
    from nominee.machinery.wire.values.scalars import parse_seconds

    try:
        return float(text)
    except ValueError:
        pass
    sign, digits = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    try:
        return sign * parse_seconds(digits)
    except ValueError:
        raise click.BadParameter(f"{text!r}: write seconds, as +30, or a duration, as -5m") from None
