"""Serve the dashboard: load the history, listen on the loopback, and follow a cluster that runs."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from nominee.dashboard import processes
from nominee.dashboard.app import Dashboard
from nominee.dashboard.board import Board
from nominee.dashboard.following import RETRY_SECONDS, ClusterFollower
from nominee.dashboard.guard import Guard, Secrets
from nominee.lab.history.etcd_watch import HistoryUnavailable
from nominee.lab.history.history_file import HistoryFileError
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.verification.settings import settings_of
from nominee.lab.timeline.document import TimeLine
from nominee.lab.timeline.reading import LogMarks, Reader
from nominee.machinery.process.http.http_server import HttpServer
from nominee.machinery.process.signals import termination_signals
from nominee.machinery.runtime.clock import Clock, rfc3339

HOST: Final = "127.0.0.1"
GRACE_SECONDS: Final = 1
NICE: Final = 19
"""The dashboard must not slow the cluster that it shows: it gets the processor time that is left."""

Announce = Callable[[str, int], None]


class PortTakenError(Exception):
    """The port cannot be listened on; the message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The source and the settings of a dashboard: a history `file`, or the cluster of `directory`.

    `waits`: the cluster is starting, and its etcd is waited for.
    """

    directory: Path
    file: Path | None = None
    is_running: bool = False
    port: int = 0
    token: str = ""
    read_only: bool = False
    verifies: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """A board, and the readers that go on to follow its cluster."""

    board: Board
    reader: Reader
    logs: LogMarks


async def load(options: Options, clock: Clock) -> Loaded:
    """Read the history. Raises: HistoryUnavailable, HistoryFileError, OSError."""
    with suppress(OSError):
        os.nice(NICE)
    file, directory = options.file, options.directory
    source = "file" if file is not None else "live" if options.is_running else "directory"
    shown = directory if file is None else file
    place = directory if file is None else file.absolute().parent
    read_only = options.read_only or source != "live"
    board = Board(TimeLine(f"{'cluster' if file is None else 'history'} {shown}", source), place, read_only)
    settings = _settings(options) if options.verifies else None
    reader, logs = Reader(board.timeline, place, settings), LogMarks(place)
    if file is not None:
        reader.read_file(file)
    else:
        await _read(reader, options, clock)
    year = int(rfc3339(reader.history.fold.time or clock.now())[:4])
    board.add_marks([*reader.marks, *logs.read(year)])
    reader.marks = []
    board.set_part("components", processes.of_plan(place))
    return Loaded(board, reader, logs)


async def _read(reader: Reader, options: Options, clock: Clock) -> None:
    while True:
        try:
            await reader.read(options.directory)
            return
        except (HistoryUnavailable, HistoryFileError):
            if not options.waits or reader.timeline.count:
                raise
        await clock.sleep(RETRY_SECONDS)


def _settings(options: Options) -> ComponentSettings:
    """Return the configuration as far as it is known; a history file alone has none."""
    return ComponentSettings() if options.file is not None else settings_of(options.directory)


async def until_signal(work: Coroutine[None, None, None]) -> None:
    """Run `work` until SIGINT, SIGTERM or SIGHUP cancels it."""
    with anyio.CancelScope() as scope:
        for number in (signal.SIGINT, *termination_signals()):
            asyncio.get_running_loop().add_signal_handler(number, scope.cancel)
        await work


async def show(options: Options, clock: Clock, announce: Announce) -> None:
    """Load and serve until cancelled. Raises: PortTakenError, and the errors of `load`."""
    await serve(await load(options, clock), options, clock, announce)


async def serve(loaded: Loaded, options: Options, clock: Clock, announce: Announce) -> None:
    """Serve until cancelled; `announce` gets the URL with the token, and the port. Raises: PortTakenError."""
    board = loaded.board
    known = Secrets(options.token or secrets.token_urlsafe(24))
    listener = _listen_again(known) if options.token and not options.port else _listen(options.port)
    port = listener.getsockname()[1]
    follower = ClusterFollower(board, loaded.reader, loaded.logs, clock) if board.is_live else None
    dashboard = Dashboard(board, known.action, follower.refresh if follower is not None else None)
    server = HttpServer(Guard(dashboard.application(), known, port), grace_seconds=GRACE_SECONDS)
    async with anyio.create_task_group() as group:

        async def run() -> None:
            # Cancelled in the middle, the server would leave its connections open: it is asked to end.
            with anyio.CancelScope(shield=True):
                await server.serve(sockets=[listener])

        group.start_soon(run)
        try:
            await server.opened.wait()
            announce(f"http://{HOST}:{port}/?token={known.token}", port)
            if follower is not None:
                group.start_soon(follower.follow_writes)
                group.start_soon(follower.poll)
            await anyio.sleep_forever()
        finally:
            board.close()
            server.stop()


def _listen_again(known: Secrets) -> socket.socket:
    """Return a socket with the port of a token, or with a free one. Raises: PortTakenError."""
    with suppress(PortTakenError):
        return _listen(known.port)
    return _listen(0)


def _listen(port: int) -> socket.socket:
    """Return a bound socket of the loopback. Raises: PortTakenError."""
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
    except OSError as error:
        listener.close()
        raise PortTakenError(error.strerror) from None
    listener.setblocking(False)
    return listener
