"""`nominee history`: every revision of objects, with its writer and the changed fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from nominee.commands.common import directory_option, echo_json, end_as_by_ctrl_c, output_option
from nominee.commands.pages import html_option, write_page
from nominee.localcluster.plan import directory_hint

if TYPE_CHECKING:
    from nominee.lab.history.object_history import Entry, Target
    from nominee.lab.history.process_logs import LogLine
    from nominee.lab.history.revision import Revision
    from nominee.lab.history.verification.reading import History

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

# The history imports gRPC and the messages: 300 ms that --help and completion of other commands would pay.


class Unreadable(click.ClickException):
    """The history cannot be read."""

    exit_code = 2


@contextmanager
def unreadable(directory: Path) -> Iterator[None]:
    """Report a history that cannot be read, with the remedy. Raises: Unreadable."""
    from nominee.lab.history.etcd_watch import HistoryUnavailable
    from nominee.lab.history.history_file import NAME, HistoryFileError
    from nominee.lab.history.verification.etcd_alone import EtcdAloneError

    try:
        yield
    except HistoryUnavailable as error:
        hint = directory_hint(directory)
        raise Unreadable(f"{error}; see `nominee status{hint}`, start it with `nominee up{hint}`") from None
    except (EtcdAloneError, HistoryFileError) as error:
        raise Unreadable(str(error)) from None
    except OSError as error:
        raise Unreadable(f"{error.filename or directory / NAME} cannot be read: {error.strerror}") from None


@click.command()
@click.argument("arguments", nargs=-1, metavar="[FILE] [KIND/NAME]...")
@directory_option
@click.option("-n", "--namespace", default="", help="Objects of this namespace only.  [default: any]")
@click.option(
    "--since", default="", metavar="TIME", help="From 30s, 5m, 2h before the end, or an RFC 3339 time."
)
@html_option("Write a page with a time line of the objects to this file, and print none.")
@output_option("text", "json")
def history(
    arguments: tuple[str, ...], directory: Path, namespace: str, since: str, html: Path | None, output: str
) -> None:
    """Show every revision of objects: who wrote it, when, and the fields that it changed.

    \b
    nominee history pod/a node/node-0
    nominee history --namespace default --since 5m
    nominee history findings/001/history.gz pod/default/a

    Without FILE the history is that of a cluster that runs, or that is down: what etcd has not compacted,
    and D/history.gz if `nominee up --history` has recorded it. A FILE is the history.gz of a scenario, a
    chaos case or a cell of a skew report. Events about a named object are shown with it, and so are lines of
    the logs beside the history that name it; restarts, steps of a scenario and faults are always shown.

    The writer is what an API server has logged (`nominee up --arg apiserver=--log-level=debug`), or else
    the manager in managedFields. The exit status is 1 if nothing is found, 2 if the history cannot be read.
    """
    end_as_by_ctrl_c()
    file, targets = _arguments(arguments, namespace)
    with unreadable(directory):
        found, read = _find(file, directory, targets, namespace, since)
    if html is not None:
        names = ", ".join(f"{each.kind.kind} {each.name}" for each in targets) or namespace or "all objects"
        _write_page(html, f"History of {names}", found, bool(targets))
        return
    _print(found, read, output)


def _arguments(arguments: Sequence[str], namespace: str) -> tuple[Path | None, list[Target]]:
    """Return the file, and the objects KIND/NAME or KIND/NAMESPACE/NAME."""
    from nominee.lab.history.history_file import NAME
    from nominee.lab.history.object_history import Target
    from nominee.session import find_kind

    file, names = None, list(arguments)
    if names and names[0].endswith(NAME) and not Path(names[0]).exists():
        raise click.UsageError(f"{names[0]}: there is no such file")
    if names and Path(names[0]).exists():
        file = Path(names.pop(0))
        file = file / NAME if file.is_dir() else file
    targets = []
    for text in names:
        kind, *parts = text.split("/")
        if not kind or not 1 <= len(parts) <= 2 or not all(parts):
            raise click.UsageError(f"{text!r} is no file, and not KIND/NAME or KIND/NAMESPACE/NAME")
        targets.append(Target(find_kind(kind), parts[0] if len(parts) == 2 else namespace, parts[-1]))
    return file, targets


def _read(
    file: Path | None, directory: Path, targets: Sequence[Target], namespace: str
) -> tuple[list[Revision], History]:
    from nominee.lab.history.object_history import Selection
    from nominee.lab.history.verification.reading import History, readable

    revisions: list[Revision] = []
    read, selection = History(), Selection(tuple(targets), namespace)

    def keep(revision: Revision) -> None:
        if selection.may_show(revision):
            revisions.append(revision)

    if file is not None:
        read.read_file(file, keep)
        return revisions, read

    async def work() -> None:
        await read.read(directory, keep)

    with readable(directory):
        anyio.run(work)
    return revisions, read


def _find(
    file: Path | None, directory: Path, targets: Sequence[Target], namespace: str, since: str
) -> tuple[list[Entry | LogLine], History]:
    """Return the entries to show, and the history. Raises: click.ClickException: nothing is found."""
    from nominee.lab.history import object_history, process_logs
    from nominee.machinery.runtime.clock import rfc3339

    revisions, read = _read(file, directory, targets, namespace)
    end = read.fold.time
    beside = file.parent if file is not None else directory
    log = process_logs.read(process_logs.log_files(beside), int(rfc3339(end)[:4]))
    selection = object_history.Selection(tuple(targets), namespace, _since(since, end))
    found = object_history.entries(revisions, selection, log)
    if not any(isinstance(each, object_history.Entry) for each in found):
        raise click.ClickException("the history has no such object, or no write of it in this time")
    return found, read


def _write_page(file: Path, title: str, found: Sequence[Entry | LogLine], is_named: bool) -> None:
    from nominee.lab.history.object_history import Entry
    from nominee.lab.timeline.page import page

    subjects = (each.revision.subject for each in found if isinstance(each, Entry) and not each.event)
    write_page(file, page(title, found, list(dict.fromkeys(subjects)) if is_named else ()))
    click.echo(f"{len(found)} entries are in {file}")


def _print(found: Sequence[Entry | LogLine], read: History, output: str) -> None:
    from nominee.lab.history import object_history
    from nominee.lab.history.verification.report import missing_lines

    if output == "json":
        echo_json({"entries": object_history.as_json(found)})
    else:
        for line in object_history.lines(found):
            click.echo(line)
    for line in missing_lines(read):
        click.echo(line, err=True)


def _since(text: str, end: float) -> float:
    """Return the time of --since: before the history's end, or as it is. Raises: click.UsageError."""
    from nominee.machinery.runtime.clock import parse_rfc3339

    if not text:
        return 0.0
    found = _DURATION.fullmatch(text)
    try:
        return end - float(found[1]) * _SECONDS[found[2]] if found else parse_rfc3339(text)
    except ValueError:
        raise click.UsageError(
            f"--since: {text!r} is no duration as 30s, 5m or 2h, and no RFC 3339 time"
        ) from None
