"""Health of the control plane's other processes, for ComponentStatuses.

A process is found by its run file and asked over HTTP when a client asks the API server. Of several replicas
one that is healthy is enough; upstream probes those of its own machine, at their default ports.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import anyio
import anyio.to_thread

from nominee.machinery.process.run_files import RunFile
from nominee.machinery.process.serving_port.health import Health
from nominee.machinery.process.serving_port.serving_client import HttpError, ServingPort, request

ETCD: Final = "etcd-0"
PROCESSES: Final = {"controller-manager": "controllers", "scheduler": "scheduler"}
NAMES: Final = (*PROCESSES, ETCD)
TIMEOUT_SECONDS: Final = 5.0
ASKED_AT_ONCE_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check: the component's answer, or the error of asking."""

    healthy: bool
    message: str = ""
    error: str = ""


class ComponentSource(Protocol):
    """Access to the health of components."""

    async def check(self, name: str) -> Checked:
        """Check the component with one of `NAMES`."""
        ...


class Components:
    """The components of a cluster's directory; `health` has the check of etcd."""

    def __init__(self, directory: Path, health: Health) -> None:
        self._directory = directory
        self._health = health
        self._threads = anyio.CapacityLimiter(ASKED_AT_ONCE_MAX)

    async def check(self, name: str) -> Checked:
        """Check the component with one of `NAMES`."""
        if name == ETCD:
            answer = await self._health.answer("/livez/etcd", {})
            healthy = answer.code == 200
            return Checked(healthy, answer.text if healthy else "", "" if healthy else answer.text.strip())
        found = Checked(healthy=False, message=f"no process {PROCESSES[name]} runs")
        for run in RunFile.of_component(self._directory, PROCESSES[name]):
            found = await self._of_process(run)
            if found.healthy:
                break
        return found

    async def _of_process(self, run: RunFile) -> Checked:
        ask = partial(request, ServingPort(run.http), "/healthz", timeout_seconds=TIMEOUT_SECONDS)
        try:
            answer = await anyio.to_thread.run_sync(ask, limiter=self._threads)
        except HttpError as error:
            return Checked(healthy=False, message=str(error))
        return Checked(200 <= answer.status < 400, answer.text)
