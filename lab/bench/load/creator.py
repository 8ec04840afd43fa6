"""The process that creates objects as fast as the API server accepts them.

It reports when it has imported its modules, and starts to create when it reads a line. It is a process of its
own so that creation and measurement do not share a processor core. Responses are not decoded: the benchmark
measures the control plane, not this client.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio

from nominee.lab.bench.load.workloads import WORKLOADS
from nominee.lab.bench.processes import Series
from nominee.lab.jobs.job import Write
from nominee.machinery.client import credentials
from nominee.machinery.client.api_client import UNARY_SECONDS_MAX
from nominee.machinery.client.grpc_options import CHANNEL_OPTIONS
from nominee.machinery.process.run_files import wait_for_run_file
from nominee.machinery.runtime.clock import SystemClock
from nominee.machinery.wire import envelope
from nominee.pb.nominee_api.v1 import api_pb2 as api


async def create(directory: Path, series: Series) -> float:
    """Create the objects of a series, with at most `concurrency` requests in flight.

    Returns how many were created a second. With `every_seconds` requests start at that interval.
    """
    run_file = await wait_for_run_file(directory, series.apiserver, limit_seconds=10.0)
    kind, make = WORKLOADS[series.workload].maker(series.name)
    clock = SystemClock()
    remaining = iter(range(series.count))
    shown = credentials.find(run_file, directory, credentials.ADMIN)
    metadata = shown.metadata if shown is not None else None
    async with credentials.channel(run_file.grpc, shown, CHANNEL_OPTIONS) as channel:
        call: Any = channel.unary_unary(
            "/nominee.api.v1.API/Create", request_serializer=lambda request: request.SerializeToString()
        )

        async def worker() -> None:
            for index in remaining:
                if series.every_seconds:
                    await clock.sleep(started + index * series.every_seconds - clock.monotonic())
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
            for _ in range(min(series.concurrency, series.count)):
                group.start_soon(worker)
        return series.count / (clock.monotonic() - started)


def create_series(_directory: Path, write: Write, cluster: Path, series: Series) -> None:
    """Report that it is ready, wait for a line on stdin, create, report objects a second (a job)."""
    write("warm")
    if sys.stdin.readline():  # else the parent process is gone
        write(anyio.run(create, cluster, series, backend_options={"use_uvloop": True}))
