"""The process that patches pods at a steady rate, and times each patch.

The time of the patch is an annotation of the pod, from which watchers compute the age of an event.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import anyio

from nominee.lab.jobs.job import Write
from nominee.machinery.api.kinds import POD
from nominee.machinery.client.api_client import connect
from nominee.machinery.runtime.clock import SystemClock

_AT_ONCE = 20
_REST_SECONDS = 1.0
"""Seconds to wait after the last patch, so that watchers receive its events."""


async def change(directory: Path, prefix: str, pods: int, rate: int, seconds: int) -> list[float]:
    """Patch `rate` pods a second, in turn; return the seconds that each patch took."""
    clock = SystemClock()
    took: list[float] = []
    async with await connect(directory, limit_seconds=10.0) as client:
        turns = iter(range(rate * seconds))
        begun = clock.monotonic()

        async def worker() -> None:
            for turn in turns:
                await clock.sleep(begun + turn / rate - clock.monotonic())
                sent = clock.monotonic()
                patch = {"metadata": {"annotations": {"nominee.example/bench": f"sent={sent:.6f};"}}}
                await client.patch(POD, f"{prefix}-{turn % pods}", "default", patch)
                took.append(clock.monotonic() - sent)

        async with anyio.create_task_group() as group:
            for _ in range(_AT_ONCE):
                group.start_soon(worker)
        await clock.sleep(_REST_SECONDS)
    return took


def change_pods(
    _directory: Path, write: Write, cluster: Path, prefix: str, pods: int, rate: int, seconds: int
) -> None:
    """Change pods; report the seconds that each patch took (a job)."""
    write(asyncio.run(change(cluster, prefix, pods, rate, seconds)))
