"""Count bound pods as any client sees them: with a watch on pods that have a node.

A pod enters that selection when it is bound, so its ADDED event is the binding. Objects are not decoded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from nominee.machinery.api.kinds import POD
from nominee.machinery.client import credentials
from nominee.machinery.client.api_client import connect
from nominee.machinery.client.grpc_options import CHANNEL_OPTIONS
from nominee.machinery.process.run_files import wait_for_run_file
from nominee.machinery.runtime.clock import Clock
from nominee.pb.nominee_api.v1 import api_pb2 as api
from nominee.pb.nominee_api.v1 import api_pb2_grpc as api_grpc


class BoundPods:
    """Times (monotonic seconds) at which pods were seen bound, in order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.times: list[float] = []
        self._changed = anyio.Event()

    async def run(self, directory: Path, *, task_status: Any) -> None:
        """Watch until cancelled; report as started when the watch is established."""
        async with await connect(directory, limit_seconds=10.0) as client:
            since = (await client.list(POD, limit=1)).resource_version
        run_file = await wait_for_run_file(directory, "apiserver", limit_seconds=10.0)
        request = api.WatchRequest(
            target=api.Target(version="v1", resource="pods"),
            field_selector="spec.nodeName!=",
            resource_version=since,
        )
        shown = credentials.find(run_file, directory, credentials.ADMIN)
        async with credentials.channel(run_file.grpc, shown, CHANNEL_OPTIONS) as channel:
            stub = api_grpc.APIStub(channel)
            stream = stub.Watch(request, metadata=shown.metadata if shown is not None else None)
            started = False
            async for response in stream:
                if not started:
                    started = True
                    task_status.started()
                now = self._clock.monotonic()
                for event in response.events:
                    if event.type == api.WatchEvent.ADDED:
                        self.times.append(now)
                    elif event.type == api.WatchEvent.ERROR:
                        raise RuntimeError(f"the watch ended: {event.error!r}")
                self._changed.set()
                self._changed = anyio.Event()
        raise RuntimeError("the watch ended")

    async def wait_for(self, count: int, stalled_seconds_max: float) -> None:
        """Wait until `count` pods are bound.

        Raises:
            TimeoutError: no pod was bound for `stalled_seconds_max`.
        """
        while len(self.times) < count:
            seen = len(self.times)
            with anyio.move_on_after(stalled_seconds_max) as scope:
                while len(self.times) == seen:
                    await self._changed.wait()
            if scope.cancelled_caught:
                raise TimeoutError(
                    f"{len(self.times)} of {count} pods are bound, "
                    f"and no further pod for {stalled_seconds_max:g} s"
                )
