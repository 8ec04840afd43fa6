"""The sections that a cluster adds to the report of a failed test: logs, events and history, with a limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nominee.localcluster.cluster import ClusterError, ProcessState
from nominee.machinery.process import child
from nominee.testing.cluster import Cluster, Moment
from nominee.testing.history import COMMAND, NOTHING_FOUND, run

LOG_LINES_MAX: Final = 40
"""Of each process."""
LINES_MAX: Final = 120
"""Of the events, and of the history."""


def sections(cluster: Cluster, began: Moment | None) -> list[tuple[str, str]]:
    """Return titles and texts: processes that are down, the logs since a test began, events and history.

    Events and history are those of the cluster's namespace.
    """
    try:
        processes = cluster.processes()
    except ClusterError as error:
        found, processes = [("nominee: no process", str(error))], []
    else:
        down = [_state(each) for each in processes if each.state != "ready"]
        found = [("nominee: processes that are not ready", "\n".join(down))] if down else []
    found += [
        (f"nominee: log of {state.name} ({state.state}, restarts {state.restarts})", text)
        for state in processes
        if (text := last_lines(_log(cluster, state.name, began).splitlines(), LOG_LINES_MAX))
    ]
    for title, words in (("events", ("get", "events")), ("history", ("history",))):
        where = ("--namespace", cluster.namespace, "--dir", str(cluster.directory))
        found.append((f"nominee: {title} in namespace {cluster.namespace}", _output(*words, *where)))
    return found


def last_lines(lines: Sequence[str], most: int) -> str:
    """Return the last lines, and how many there are before them."""
    more = len(lines) - most
    return "\n".join([*([f"... {more} lines before"] if more > 0 else []), *lines[-most:]])


def _state(process: ProcessState) -> str:
    ended = f", last exit: {process.last_exit}" if process.last_exit else ""
    return f"{process.name}: {process.state}, restarts {process.restarts}{ended}"


def _log(cluster: Cluster, name: str, began: Moment | None) -> str:
    try:
        return cluster.logs(name, began)
    except ClusterError:  # it has never started
        return ""


def _output(*words: str) -> str:
    """Return the output of a command, or why it has none: a failed test may have broken its cluster."""
    try:
        text = run(child.command(COMMAND, *words), also=NOTHING_FOUND)
    except ClusterError as error:
        return str(error)
    return last_lines(text.splitlines(), LINES_MAX) or "none"
