"""`python -m nominee.lab.bench.load.creator`: create objects as fast as the API server accepts them.

The process prints a line when it is connected, and starts to create when it reads a line. It is a process of
its own so that creation and measurement do not share a processor core. Responses are not decoded: the
benchmark measures the control plane, not this client.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import anyio

from nominee.lab.bench.load.workloads import WORKLOADS
from nominee.machinery.client import credentials
from nominee.machinery.client.api_client import UNARY_SECONDS_MAX
from nominee.machinery.client.grpc_options import CHANNEL_OPTIONS
from nominee.machinery.process.run_files import wait_for_run_file
from nominee.machinery.runtime.clock import SystemClock
from nominee.machinery.wire import envelope
from nominee.pb.nominee_api.v1 import api_pb2 as api


async def create(
    directory: Path, workload: str, series: str, count: int, concurrency: int, every_seconds: float = 0.0
) -> dict[str, float]:
    """Create `count` objects with at most `concurrency` requests in flight.

    Returns the count and the seconds taken. With `every_seconds` requests start at that interval.
    """
    run_file = await wait_for_run_file(directory, "apiserver", limit_seconds=10.0)
    kind, make = WORKLOADS[workload].maker(series)
    clock = SystemClock()
    remaining = iter(range(count))
    shown = credentials.find(run_file, directory, credentials.ADMIN)
    metadata = shown.metadata if shown is not None else None
    async with credentials.channel(run_file.grpc, shown, CHANNEL_OPTIONS) as channel:
        call: Any = channel.unary_unary(
            "/nominee.api.v1.API/Create", request_serializer=lambda request: request.SerializeToString()
        )

        async def worker() -> None:
            for index in remaining:
                if every_seconds:
                    await clock.sleep(started + index * every_seconds - clock.monotonic())
                obj = make(index)
                target = api.Target(
                    group=kind.group,
                    version=kind.version,
                    resource=kind.plural,
                    namespace=obj.metadata.namespace,
                    name=obj.metadata.name,
                )
                await call(
                    api.CreateRequest(target=target, body=envelope.encode(obj)),
                    timeout=UNARY_SECONDS_MAX,
                    metadata=metadata,
                )

        started = clock.monotonic()
        async with anyio.create_task_group() as group:
            for _ in range(min(concurrency, count)):
                group.start_soon(worker)
        return {"count": count, "seconds": clock.monotonic() - started}


def main() -> None:
    """Run the program: print `warm`, wait for a line on stdin, create, print the result as JSON."""
    parser = argparse.ArgumentParser(prog="python -m nominee.lab.bench.load.creator")
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--workload", required=True, choices=sorted(WORKLOADS))
    parser.add_argument("--series", required=True, help="nodes, or the prefix of the pods' names")
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--every-seconds", type=float, default=0.0)
    options = parser.parse_args()
    print("warm", flush=True)
    if not sys.stdin.readline():  # the parent process is gone
        return
    result = anyio.run(
        create,
        options.dir,
        options.workload,
        options.series,
        options.count,
        options.concurrency,
        options.every_seconds,
        backend_options={"use_uvloop": True},
    )
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
