"""The details of one object that the page asks for: a revision, its history, and the scheduler's decisions.

All functions take the revisions of a time line in their order. They run in a thread: decoding takes a while.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from nominee.lab.history import object_history, process_logs
from nominee.lab.history.changes import shown_object
from nominee.lab.history.object_history import Entry, Selection, Target
from nominee.lab.history.process_logs import LogLine
from nominee.lab.history.revision import Revision
from nominee.machinery.api import kinds
from nominee.machinery.runtime.clock import SystemClock, rfc3339
from nominee.machinery.wire import codec
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from rich.console import RenderableType

DECISIONS_MAX: Final = 50
_DECIDING: Final = "scheduler"
_SIMULATED: Final = "simulation"
_WIDTH: Final = 160


class NotFoundError(Exception):
    """The history has no such object, or not at that revision."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The scheduler's emulated version, "" for the default, and the gates that differ from its defaults."""

    version: str = ""
    gates: str = ""


def target_of(text: str) -> Target:
    """Return the object of `Pod/default/a` or `Node/n1`. Raises: NotFoundError: there is no such kind."""
    kind, *parts = text.split("/")
    found = next(kinds.by_name(kind), None)
    if found is None or len(parts) not in (1, 2) or not all(parts):
        raise NotFoundError(f"{text!r} is not KIND/NAME or KIND/NAMESPACE/NAME of a kind that exists")
    return Target(found, parts[0] if len(parts) == 2 else "", parts[-1])


def detail(revisions: Sequence[Revision], target: Target, number: int, logs: Path) -> Json:
    """Return the newest revision of an object up to this one: its writer, changes and content.

    Raises: NotFoundError.
    """
    own = (each for each in reversed(revisions) if target.matches(each.kind, each.namespace, each.name))
    revision = next((each for each in own if each.revision <= number), None)
    if revision is None:
        raise NotFoundError(f"{target.kind.kind} {target.name} did not exist at revision {number}")
    log = _log(logs, revision.time, f" revision={revision.revision} ")
    (entry,) = object_history.entries([revision], Selection([target]), _writes(log))
    assert isinstance(entry, Entry)
    first = next(object_history.lines([entry]))
    return {
        "name": first,
        "writer": "" if revision.is_state else str(entry.writer),
        "changes": [] if revision.value is None else [str(change) for change in entry.changes],
        "object": []
        if revision.object is None
        else json.dumps(shown_object(revision.object), indent=1).splitlines(),
    }


def history(revisions: Sequence[Revision], target: Target, logs: Path) -> list[str]:
    """Return the lines that `nominee history` prints about an object. Raises: NotFoundError."""
    name = target.name.encode()
    # An Event names its object in its value: only those that may be about this one are decoded.
    of_object = [
        each
        for each in revisions
        if each.name == target.name
        or (each.kind is kinds.EVENT and each.value is not None and name in each.value.data)
    ]
    log = _log(logs, revisions[-1].time if revisions else 0.0, target.name)
    found = object_history.entries(of_object, Selection([target]), log)
    if not any(isinstance(each, Entry) for each in found):
        raise NotFoundError(f"the history has no {target.kind.kind} {target.name}")
    return list(object_history.lines(found))


def decisions(target: Target, until: float, logs: Path) -> list[str]:
    """Return the newest lines of schedulers' logs that name an object, up to a time."""
    lines = [
        line
        for line in _log(logs, until, target.name)
        if line.process.startswith((_DECIDING, _SIMULATED))
        and line.time <= until
        and line.is_about(target.kind.kind, target.namespace, target.name)
    ]
    return list(object_history.lines(lines[-DECISIONS_MAX:]))


def explain(revisions: Iterable[Revision], target: Target, number: int, setting: Setting) -> list[str]:
    """Return the verdict of `nominee explain` on a pod in the state at a revision."""
    from nominee.explain.cluster import KINDS
    from nominee.explain.explainer import PodError, Setup, explain_pods
    from nominee.explain.files import ClusterFile
    from nominee.explain.tables import render
    from nominee.machinery.api.errors import StatusError
    from nominee.machinery.features.gates import GateError, Version, parse_gates
    from nominee.machinery.wire.envelope import EnvelopeError
    from nominee.machinery.wire.values.scalars import DecodeError
    from nominee.scheduler.explanation.verdict import ExplainError

    state: dict[str, Revision] = {}
    for revision in revisions:
        if revision.revision <= number and revision.kind in KINDS:
            state[revision.key] = revision
    try:
        documents = [codec.to_json(each.object) for each in state.values() if each.object is not None]
        version = Version.parse(setting.version) if setting.version else None
        setup = Setup(version=version, gates=parse_gates(setting.gates))
        cluster = setup.build(ClusterFile("", documents), SystemClock())
        (found,) = explain_pods(cluster, f"{target.namespace}/{target.name}")
    except (PodError, StatusError, GateError, EnvelopeError, DecodeError, ExplainError, ValueError) as error:
        return [str(error)]
    return _lines(render(found))


def explain_now(target: Target, directory: Path) -> list[str]:
    """Return the running scheduler's explanation of a pod, as `nominee explain` prints it."""
    from nominee.explain.live import explain_running
    from nominee.explain.tables import render_live

    name = f"{target.namespace}/{target.name}"
    try:
        found = explain_running(name, directory=directory, scheduler=_DECIDING, nodes=100)
    except click.ClickException as error:
        return [error.message]
    return _lines(render_live(found))


def _lines(page: RenderableType) -> list[str]:
    from rich.console import Console

    console = Console(file=io.StringIO(), width=_WIDTH, highlight=False)
    with console.capture() as capture:
        console.print(page)
    return [line.rstrip() for line in capture.get().splitlines()]


def _log(logs: Path, time: float, part: str) -> list[LogLine]:
    """Return the lines of the logs with this text, and the marks."""
    marked = process_logs.MARK.search
    year = int(rfc3339(time)[:4])
    return process_logs.read(process_logs.log_files(logs), year, lambda text: part in text or marked(text))


def _writes(log: Iterable[LogLine]) -> list[LogLine]:
    """Return the lines that name a writer."""
    return [line for line in log if line.message == process_logs.WROTE]
