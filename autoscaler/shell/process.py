"""The autoscaler as a process: looks again and again, at an interval or as soon as a pod has no place."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import yaml

from autoscaler.actuation import Actuator
from autoscaler.cloud.node_groups import NodeGroup
from autoscaler.cloud.process import CloudService
from autoscaler.loop import Autoscaler
from autoscaler.options import Options
from autoscaler.planning.status import ScaleDownCandidates, StatusBuilder, initializing, timestamp
from autoscaler.result import LoopResult
from autoscaler.shell.cluster import ApiCluster
from autoscaler.shell.event_limits import event_correlator
from autoscaler.shell.metrics import Metrics
from autoscaler.shell.provider import CloudConfig, ExternalProvider
from machinery.api.errors import StatusError
from machinery.client import credentials
from machinery.events.correlating_recorder import CorrelatingRecorder
from machinery.process import run_files
from machinery.process.component import Process
from machinery.process.run_files import RunFile
from machinery.runtime.clock import rfc3339

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

STATUS_SECONDS_MIN = 1.0
"""The status is not written more often than this, however short the interval of the loop."""
FREQUENT_SECONDS_MIN = 0.05
GOODBYE_SECONDS_MAX = 2.0


@dataclass(slots=True)
class _Status:
    """Writes the status ConfigMap after loops."""

    autoscaler: Autoscaler
    cluster: ApiCluster
    builder: StatusBuilder
    written: float = float("-inf")

    async def write(self, result: LoopResult) -> str:
        """Write the status after a loop, not too often; return what went wrong, or ""."""
        now = result.at
        if now - self.written < STATUS_SECONDS_MIN:
            return ""
        self.written = now
        if result.empty_cluster:
            return await write_status(self.cluster, initializing(now, result.empty_cluster), now)
        autoscaler, planner = self.autoscaler, self.autoscaler.planner
        candidates = ScaleDownCandidates(nodes=planner.unneeded(), planned_at=planner.updated_at)
        document = self.builder.build(autoscaler.state, autoscaler.view, candidates, now)
        return await write_status(self.cluster, document, now)


async def write_status(cluster: ApiCluster, document: Mapping[str, Any], now: float) -> str:
    """Write a status; return what went wrong, or ""."""
    try:
        await cluster.write_status(yaml.safe_dump(dict(document)), timestamp(now))
    except StatusError as error:
        return str(error)
    return ""


async def run_autoscaler(process: Process, options: Options, cloud: CloudConfig | None) -> None:
    """The body of the process; returns when it is to stop. Without `cloud`: the one in DIR/run/cloud.json."""
    client = await process.client(user_agent=f"cluster-autoscaler/v{process.version}")
    where = cloud or _own_cloud(process, await process.wait_for("cloud"))
    recorder = CorrelatingRecorder(
        client, "cluster-autoscaler", clock=process.clock, correlator=event_correlator(options)
    )
    cluster = ApiCluster(client, options, process.clock, recorder)
    process.step = "list nodes and pods"
    async with where.channel() as channel, anyio.create_task_group() as tasks:
        for informer in cluster.informers:
            tasks.start_soon(informer.run)
        tasks.start_soon(recorder.run)
        for informer in cluster.informers:
            await informer.wait_synced()
        now = process.clock.now()
        if options.write_status_configmap and (
            problem := await write_status(cluster, initializing(now), now)
        ):
            process.log.warning("Status cannot be written", error=problem)

        def spawn(run: Callable[[], Coroutine[Any, Any, None]]) -> None:
            tasks.start_soon(run)

        provider = ExternalProvider(channel, process.clock, timeout=where.timeout)
        actuator = Actuator(
            options=options, cluster=cluster, cloud=provider, clock=process.clock, spawn=spawn
        )
        autoscaler = Autoscaler(
            options,
            cluster,
            provider,
            actuator,
            gates=process.gates,
            clock=process.clock,
            rng=process.rng,
            listers=cluster.listers,
        )
        shell = _Shell(process, options, cluster, autoscaler)
        process.serving.add_route("/debug/loop", shell.debug)
        tasks.start_soon(shell.run)
        await process.announce(compat=options.compat.value)
        await process.stopping.wait()
        tasks.cancel_scope.cancel()
    with anyio.move_on_after(GOODBYE_SECONDS_MAX):
        try:
            await cluster.delete_status()
        except StatusError as error:
            process.log.warning("Status stays behind", error=str(error))


def _own_cloud(process: Process, found: RunFile) -> CloudConfig:
    """Where the built-in cloud is, and the certificate that it wants."""
    authority = found.document.get("ca", "")
    if not authority:
        return CloudConfig(address=found.grpc)
    certificate, key = credentials.certificate_paths(process.directory, process.name)
    return CloudConfig(address=found.grpc, cert=str(certificate), key=str(key), cacert=str(authority))


async def run_with_cloud(process: Process, options: Options, groups: tuple[NodeGroup, ...]) -> None:
    """The same with the built-in cloud in this process; kubelets find it as if it were another."""
    service = CloudService(process, groups, "127.0.0.1:0")
    try:
        async with anyio.create_task_group() as tasks:
            address = await service.start(tasks)
            document = {"component": "cloud", "name": "cloud", "pid": os.getpid(), "grpc": address}
            run_files.write(process.directory, "cloud", document)
            await run_autoscaler(process, options, CloudConfig(address=address))
            tasks.cancel_scope.cancel()
    finally:
        run_files.remove(process.directory, "cloud", os.getpid())
        await service.stop()


class _Shell:
    """Runs loops at their intervals, and reports their results."""

    def __init__(
        self, process: Process, options: Options, cluster: ApiCluster, autoscaler: Autoscaler
    ) -> None:
        self._process, self._options, self._cluster = process, options, cluster
        self._autoscaler = autoscaler
        self._metrics = Metrics()
        self._status = _Status(autoscaler, cluster, StatusBuilder())
        self._pending = anyio.Event()
        self._last: LoopResult | None = None
        autoscaler.on_deleted = self._metrics.deleted
        autoscaler.actuator.evicted = self._metrics.evicted_pod
        cluster.on_pending(lambda: self._pending.set())

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            began = self._process.clock.monotonic()
            observation = self._cluster.observe()
            result = self._last = await self._autoscaler.run_once()
            seconds = self._process.clock.monotonic() - began
            self._metrics.after_loop(self._autoscaler, result, observation, seconds)
            self._log(result)
            if self._options.write_status_configmap:
                problem = await self._status.write(result)
                if problem:
                    self._process.log.warning("Status cannot be written", error=problem)
            await self._wait(result, seconds)

    async def _wait(self, result: LoopResult, seconds: float) -> None:
        """The rest of the interval; shorter after an action, or when a pod turns out to have no place."""
        if result.acted:
            await self._process.clock.sleep(min(FREQUENT_SECONDS_MIN, self._options.scan_interval))
            return
        with anyio.move_on_after(max(self._options.scan_interval - seconds, 0.0)):
            if not self._options.frequent_loops_enabled:
                await anyio.sleep_forever()
            await self._pending.wait()
            await self._process.clock.sleep(FREQUENT_SECONDS_MIN)
        self._pending = anyio.Event()

    def _log(self, result: LoopResult) -> None:
        log = self._process.log
        if result.error:
            log.warning("Loop failed", error=result.error)
        for event in result.events:
            name = event.about.metadata.name if event.about is not None else ""
            log.info(event.message, reason=event.reason, about=name)

    async def debug(self, request: Request) -> Response:
        """`GET /debug/loop`: what the last loop saw and why each node stays."""
        from starlette.responses import JSONResponse

        planner, last = self._autoscaler.planner, self._last
        return JSONResponse(
            {
                "at": rfc3339(last.at) if last is not None else "",
                "compat": self._options.compat.value,
                "error": last.error if last is not None else "",
                "scaleUp": str(last.scale_up.result) if last is not None else "",
                "scaleDown": last.scale_down if last is not None else "",
                "unneeded": planner.unneeded(),
                "unremovable": {name: str(why) for name, why in planner.unremovable.reasons.items()},
                "utilization": {name: found.share for name, found in planner.utilization.items()},
                "deleting": sorted(self._autoscaler.actuator.deletions.names()),
            }
        )
