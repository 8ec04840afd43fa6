"""`python -m nominee.lab.bench.load.changer`: patch pods at a steady rate, and report how long each patch took.

The time of the patch is an annotation of the pod, from which watchers compute the age of an event.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

import anyio

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


def main() -> None:
    """Run the program; print the seconds that each patch took as JSON."""
    parser = argparse.ArgumentParser(prog="python -m nominee.lab.bench.load.changer")
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--rate", type=int, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    options = parser.parse_args()
    took = asyncio.run(change(options.dir, options.prefix, options.pods, options.rate, options.seconds))
    print(json.dumps(took))


if __name__ == "__main__":
    main()
