"""The process that has many watches on pods.

The process that changes a pod writes the time (the machine's monotonic clock) into an annotation after
`MARK`, so that a watcher knows the age of an event without decoding it. This process reports when all
watches are established, and reports their results after it reads a line.
"""

from __future__ import annotations

import array
import asyncio
import json
import re
import ssl
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from nominee.lab.bench.figures import percentile
from nominee.lab.jobs.job import Write
from nominee.machinery.client import credentials
from nominee.machinery.client.credentials import Credential
from nominee.machinery.client.grpc_options import CHANNEL_OPTIONS
from nominee.machinery.process.run_files import RunFile, wait_for_run_file
from nominee.machinery.runtime.clock import Clock, SystemClock
from nominee.pb.nominee_api.v1 import api_pb2 as api
from nominee.pb.nominee_api.v1 import api_pb2_grpc as api_grpc

MARK = re.compile(rb"sent=(\d+\.\d+);")
_MARK_BYTES_MAX = 40
FORMS = {
    "rest-json": "application/json",
    "rest-protobuf": "application/vnd.kubernetes.protobuf;stream=watch",
    "grpc": "",
}
_READ_BYTES = 1 << 16
_STREAMS_PER_CHANNEL = 10


@dataclass(slots=True)
class Seen:
    """Delays of one watch: seconds from each change's request to its event here."""

    delays: array.array[float] = field(default_factory=lambda: array.array("d"))
    ended: str = ""


class Marks:
    """A search for marks in a stream of bytes; a mark may be split between two reads."""

    def __init__(self) -> None:
        self._before = b""

    def feed(self, data: bytes) -> list[float]:
        """Return the times in the next bytes, each once."""
        whole = self._before + data
        found = list(MARK.finditer(whole))
        # The end may be the beginning of a mark: search it again with the next bytes.
        begin = max(found[-1].end() if found else 0, len(whole) - _MARK_BYTES_MAX)
        self._before = whole[begin:]
        return [float(mark[1]) for mark in found]


class Watchers:
    """All watches of a process."""

    def __init__(self, run_file: RunFile, shown: Credential | None, clock: Clock) -> None:
        self._run_file = run_file
        self._shown = shown
        self._clock = clock
        self.seen: list[Seen] = []

    def _note(self, seen: Seen, moments: Iterable[float]) -> None:
        now = self._clock.monotonic()
        seen.delays.extend(now - moment for moment in moments)

    async def rest(self, accept: str, version: str, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Run one watch over HTTP, read as bytes."""
        reader, writer = await self.request(
            f"/api/v1/pods?watch=1&resourceVersion={version}&allowWatchBookmarks=true", accept
        )
        seen = Seen()
        self.seen.append(seen)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head.split(b"\r\n", 1)[0]:
                raise RuntimeError(f"no watch: {head!r}")
            task_status.started()
            marks = Marks()
            while data := await reader.read(_READ_BYTES):
                self._note(seen, marks.feed(data))
            seen.ended = "the server hung up"
        finally:
            writer.close()

    async def request(self, path: str, accept: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Send a GET request on a connection of its own."""
        host, _, port = str(self._run_file.document["rest"]).rpartition(":")
        context = None
        authorization = ""
        if self._shown is not None:
            context = ssl.create_default_context(cadata=self._shown.authority.decode())
            authorization = f"Authorization: {self._shown.metadata[0][1]}\r\n"
        reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=context)
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: {accept}\r\n{authorization}\r\n".encode()
        )
        await writer.drain()
        return reader, writer

    async def grpc(
        self, stub: api_grpc.APIStub, version: str, *, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        """Run one watch over gRPC."""
        seen = Seen()
        self.seen.append(seen)
        request = api.WatchRequest(
            target=api.Target(version="v1", resource="pods"), resource_version=version, allow_bookmarks=True
        )
        stream = stub.Watch(request, metadata=self._shown.metadata if self._shown is not None else None)
        standing = False
        async for response in stream:
            if not standing:
                standing = True
                task_status.started()
            for event in response.events:
                self._note(seen, (float(mark[1]) for mark in MARK.finditer(event.body)))
        seen.ended = "the server ended the watch"


async def watch(
    directory: Path, form: str, count: int, slow: int, version: str, stand: Callable[[], None]
) -> dict[str, object]:
    """Run until a line comes in on stdin; call `stand` when all watches are open."""
    run_file = await wait_for_run_file(directory, "apiserver", limit_seconds=10.0)
    shown = credentials.find(run_file, directory, credentials.ADMIN)
    watchers = Watchers(run_file, shown, SystemClock())
    channels = []
    async with anyio.create_task_group() as group:
        stalled = [
            await watchers.request(f"/api/v1/pods?watch=1&resourceVersion={version}", "application/json")
            for _ in range(slow)
        ]
        for number in range(count):
            if FORMS[form]:
                await group.start(watchers.rest, FORMS[form], version)
                continue
            if number % _STREAMS_PER_CHANNEL == 0:
                channels.append(credentials.channel(run_file.grpc, shown, CHANNEL_OPTIONS))
            await group.start(watchers.grpc, api_grpc.APIStub(channels[-1]), version)
        stand()
        await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
        group.cancel_scope.cancel()
    for channel in channels:
        await channel.close()
    return {**_figures(watchers.seen), "slow": [await _how_it_ended(*each) for each in stalled]}


def _figures(seen: list[Seen]) -> dict[str, Any]:
    delays = array.array("d")
    for each in seen:
        delays.extend(each.delays)
    return {
        "events": len(delays),
        "fewest": min(len(each.delays) for each in seen),
        "ended": sorted({each.ended for each in seen if each.ended}),
        "delayMilliseconds": {
            f"p{percent}": round(percentile(delays, percent) * 1000, 2) if delays else None
            for percent in (50, 90, 99, 100)
        },
    }


async def _how_it_ended(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> dict[str, object]:
    """Return the number of events in a watch that its client never read, and the status after them."""
    data = b""
    with anyio.move_on_after(10.0):
        while piece := await reader.read(_READ_BYTES):
            data += piece
    writer.close()
    found = re.findall(rb'\{"type":"ERROR",.*\}', data)
    status = json.loads(found[-1])["object"] if found else {}
    return {
        "events": len(MARK.findall(data)),
        "status": {key: status[key] for key in ("code", "reason") if key in status},
    }


def watch_pods(
    _directory: Path, write: Write, cluster: Path, form: str, count: int, slow: int, version: str
) -> None:
    """Report that the watches are open, wait for a line on stdin, report their results (a job)."""
    write(asyncio.run(watch(cluster, form, count, slow, version, lambda: write("standing"))))
