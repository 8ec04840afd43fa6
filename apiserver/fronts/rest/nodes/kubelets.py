"""Requests to the kubelet processes: the usage of nodes and pods, and the paths of a node's kubelet.

They are found by their run files and requested over HTTP when a client asks the API server, as metrics-server
and kube-apiserver do. The last usage is cached for `FRESH_SECONDS`, as is the process of each node.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import anyio.to_thread

from nominee.apiserver.objects.usage import UsageSnapshot, Used
from nominee.machinery.process.run_files import RunFile
from nominee.machinery.process.serving_port.serving_client import ServingPort, request
from nominee.machinery.runtime import host, logs
from nominee.machinery.runtime.clock import Clock, parse_rfc3339

FRESH_SECONDS = 2.0
TIMEOUT_SECONDS = 5.0
ANSWER_BYTES_MAX = 64 << 20
ASKED_AT_ONCE_MAX = 8
NOT_CARRIED = 421
"""A kubelet's HTTP status for a node that another process runs."""
_log = logs.get()


@dataclass(frozen=True, slots=True)
class Fetched:
    """A kubelet's response."""

    code: int
    content_type: str
    body: bytes


class Kubelets:
    """The kubelet processes of a cluster's directory."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._run = directory / "run"
        self._directory = directory
        self._clock = clock
        self._asking = anyio.Lock()
        self._threads = anyio.CapacityLimiter(ASKED_AT_ONCE_MAX)
        self._asked_at = float("-inf")
        self._last = UsageSnapshot(0.0)
        # By node: the name of the run file of the process that ran it at the last request.
        self._carriers: dict[str, str] = {}

    async def usage(self) -> UsageSnapshot:
        """Return the current usage; kubelets that do not answer are left out."""
        async with self._asking:  # concurrent callers get the same snapshot
            if self._clock.monotonic() - self._asked_at >= FRESH_SECONDS:
                self._last = await self._ask_all()
                self._asked_at = self._clock.monotonic()
            return self._last

    async def _ask_all(self) -> UsageSnapshot:
        found = UsageSnapshot(self._clock.now())

        async def ask(run: RunFile) -> None:
            try:
                answer = await self._fetch(run, "/stats/summary")
                _read(json.loads(answer.body), found)
            except (OSError, ValueError, KeyError, TypeError) as error:
                _log.warning("A kubelet does not tell its usage", kubelet=run.name, error=str(error))

        async with anyio.create_task_group() as group:
            for run in self._running():
                group.start_soon(ask, run)
        return found

    async def of_node(self, node: str, path: str) -> Fetched | None:
        """Return the kubelet's response to a GET, or None when no kubelet runs the node.

        `path` is quoted, with its query.

        Raises: OSError when the kubelet does not answer.
        """
        last = self._carriers.pop(node, "")
        for run in sorted(self._running(), key=lambda run: run.name != last):
            try:
                answer = await self._fetch(run, f"/nodes/{quote(node, safe='')}/{path}")
            except OSError:
                if run.name == last:
                    raise
                # This process may run the node, or another one.
                continue
            if answer.code != NOT_CARRIED:
                self._carriers[node] = run.name
                return answer
        return None

    def _running(self) -> list[RunFile]:
        paths = host.current().glob(self._run, "kubelet*.json")
        found = [RunFile.read(self._directory, path.stem) for path in paths]
        return [run for run in found if run is not None and run.http]

    async def _fetch(self, run: RunFile, path: str) -> Fetched:
        """Make a GET request; any status is a result.

        Raises: OSError.
        """
        simulated = await host.current().simulated_get(run.http, path)
        if simulated is not None:
            return Fetched(simulated[0], "", simulated[1])
        ask = partial(request, ServingPort.of(run.http, self._directory), path)
        answer = await anyio.to_thread.run_sync(
            partial(ask, timeout_seconds=TIMEOUT_SECONDS), limiter=self._threads
        )
        return Fetched(answer.status, answer.content_type, answer.body)


def _read(document: Any, found: UsageSnapshot) -> None:
    for summary in document:
        node = summary["node"]
        found.nodes[node["nodeName"]] = _used(node)
        for pod in summary["pods"]:
            containers = {each["name"]: _used(each) for each in pod["containers"]}
            found.pods[pod["podRef"]["uid"]] = containers


def _used(stats: Any) -> Used:
    cpu, memory = stats["cpu"], stats["memory"]
    return Used(int(cpu["usageNanoCores"]), int(memory["workingSetBytes"]), parse_rfc3339(cpu["time"]))
