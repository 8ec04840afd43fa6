"""The sections that a cluster adds to the report of a failed test: logs, events and history, with a limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from nominee.localcluster.cluster import ClusterError, ProcessState
from nominee.machinery.api.errors import StatusError
from nominee.machinery.printing.tables import table
from nominee.machinery.wire.values.scalars import Json
from nominee.testing.cluster import Cluster, Moment

LOG_LINES_MAX: Final = 40
"""Of each process."""
EVENTS_MAX: Final = 40
REVISIONS_MAX: Final = 40


def sections(cluster: Cluster, began: Moment | None) -> list[tuple[str, str]]:
    """Return titles and texts: the logs since a test began, and events and history of the namespace."""
    found = [
        (f"nominee: log of {state.name} ({state.state}, restarts {state.restarts})", text)
        for state in _processes(cluster)
        if (text := last_lines(cluster.logs(state.name, began).splitlines(), LOG_LINES_MAX))
    ]
    where = f"in namespace {cluster.namespace}"
    found.append((f"nominee: events {where}", _text(lambda: _events(cluster))))
    found.append((f"nominee: history {where}", _text(lambda: _history(cluster, began))))
    return found


def last_lines(lines: Sequence[str], most: int) -> str:
    """Return the last lines, and how many there are before them."""
    more = len(lines) - most
    return "\n".join([*([f"... {more} lines before"] if more > 0 else []), *lines[-most:]])


def _processes(cluster: Cluster) -> Sequence[ProcessState]:
    try:
        return cluster.processes()
    except ClusterError:
        return ()


def _text(read: Callable[[], str]) -> str:
    """Return a text, or why it cannot be read: a failed test may have broken its cluster."""
    try:
        return read() or "none"
    except (ClusterError, StatusError) as error:
        return f"cannot be read: {error}"


def _events(cluster: Cluster) -> str:
    events = sorted(cluster.list("events"), key=_time)
    if not events:
        return ""
    rows = [
        [
            _time(event)[11:19],
            str(event.get("type", "")),
            str(event.get("reason", "")),
            f"{event['involvedObject'].get('kind', '')} {event['involvedObject'].get('name', '')}",
            str(event.get("message", "")),
        ]
        for event in events
    ]
    return last_lines(list(table(["TIME", "TYPE", "REASON", "OBJECT", "MESSAGE"], rows)), EVENTS_MAX)


def _time(event: Mapping[str, Json]) -> str:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return str(next(filter(None, times), None) or event["metadata"].get("creationTimestamp", ""))


def _history(cluster: Cluster, began: Moment | None) -> str:
    return last_lines([str(each) for each in cluster.history(since=began)], REVISIONS_MAX)
