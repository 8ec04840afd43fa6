"""Asks the kubelet processes what their nodes and pods use.

Found by their run files and asked over HTTP when somebody wants to know, as metrics-server asks kubelets;
nothing is kept but the last answer, for `FRESH_SECONDS`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.to_thread

from machinery import logs
from machinery.clock import Clock
from machinery.run_files import RunFile

FRESH_SECONDS = 2.0
TIMEOUT_SECONDS = 5.0
ANSWER_BYTES_MAX = 64 << 20
ASKED_AT_ONCE_MAX = 8
_log = logs.get()


@dataclass(frozen=True, slots=True)
class Used:
    """What a node or a container uses: nanocores of cpu, bytes of memory."""

    nanocores: int
    memory: int


@dataclass(frozen=True, slots=True)
class UsageSnapshot:
    """What was in use at a time (epoch seconds): by node; by pod's uid, and there by container."""

    time: float
    nodes: dict[str, Used] = field(default_factory=dict)
    pods: dict[str, dict[str, Used]] = field(default_factory=dict)


class UsageSource(Protocol):
    """Who knows what is in use."""

    async def usage(self) -> UsageSnapshot:
        """What is in use now."""


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

    async def usage(self) -> UsageSnapshot:
        """What is in use; a kubelet that does not answer is left out."""
        async with self._asking:  # who asks meanwhile gets the same answer
            if self._clock.monotonic() - self._asked_at >= FRESH_SECONDS:
                self._last = await self._ask_all()
                self._asked_at = self._clock.monotonic()
            return self._last

    async def _ask_all(self) -> UsageSnapshot:
        found = UsageSnapshot(self._clock.now())

        async def ask(run: RunFile) -> None:
            try:
                document = await anyio.to_thread.run_sync(_get, run.http, limiter=self._threads)
                _read(document, found)
            except (OSError, ValueError, KeyError, TypeError) as error:
                _log.warning("A kubelet does not tell its usage", kubelet=run.name, error=str(error))

        async with anyio.create_task_group() as group:
            for path in sorted(self._run.glob("kubelet*.json")):
                run = RunFile.read(self._directory, path.stem)
                if run is not None and run.http:
                    group.start_soon(ask, run)
        return found


def _get(address: str) -> Any:
    import urllib.request

    directly = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with directly.open(f"http://{address}/stats/summary", timeout=TIMEOUT_SECONDS) as answer:
        data = answer.read(ANSWER_BYTES_MAX + 1)
    if len(data) > ANSWER_BYTES_MAX:
        raise ValueError(f"more than {ANSWER_BYTES_MAX} bytes")
    return json.loads(data)


def _read(document: Any, found: UsageSnapshot) -> None:
    for summary in document:
        node = summary["node"]
        found.nodes[node["nodeName"]] = _used(node)
        for pod in summary["pods"]:
            containers = {each["name"]: _used(each) for each in pod["containers"]}
            found.pods[pod["podRef"]["uid"]] = containers


def _used(stats: Any) -> Used:
    return Used(int(stats["cpu"]["usageNanoCores"]), int(stats["memory"]["workingSetBytes"]))
