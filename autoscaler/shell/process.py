"""The autoscaler as a process: runs loops at an interval, or as soon as a pod is unschedulable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import grpc.aio

from nominee.autoscaler.cloud.node_groups import NodeGroup
from nominee.autoscaler.cloud.process import CloudService
from nominee.autoscaler.loop import run_once
from nominee.autoscaler.options import Options
from nominee.autoscaler.planning.node_groups.status import initializing
from nominee.autoscaler.result import LoopResult
from nominee.autoscaler.shell.cluster import ApiCluster
from nominee.autoscaler.shell.event_limits import event_correlator
from nominee.autoscaler.shell.executor import Executor
from nominee.autoscaler.shell.metrics import Metrics
from nominee.autoscaler.shell.provider import CloudConfig, ExternalProvider
from nominee.autoscaler.state import AutoscalerState
from nominee.machinery.api.errors import StatusError
from nominee.machinery.client import credentials
from nominee.machinery.events.correlating_recorder import CorrelatingRecorder
from nominee.machinery.process import run_files
from nominee.machinery.process.component import Process
from nominee.machinery.process.leading import run_as_leader
from nominee.machinery.process.run_files import RunFile
from nominee.machinery.process.serving_port.debug_state import DebugState
from nominee.machinery.runtime import host
from nominee.machinery.runtime.clock import rfc3339

if TYPE_CHECKING:
    # Starlette is imported with the first page: most processes serve none.
    from starlette.requests import Request
    from starlette.responses import Response

LEASE = "cluster-autoscaler"
FREQUENT_SECONDS_MIN = 0.05
EXIT_CLEANUP_SECONDS_MAX = 2.0


async def run_autoscaler(
    process: Process, options: Options, cloud: CloudConfig | None, *, leader_elect: bool = False
) -> None:
    """Run the autoscaler until the process stops. Without `cloud` the address is that in D/run/cloud.json.

    With `leader_elect` loops run only while this process has the lease kube-system/cluster-autoscaler.
    """
    client = await process.client(user_agent=f"cluster-autoscaler/v{process.version}")
    config = cloud or _built_in_cloud(process, await process.wait_for("cloud"))
    recorder = CorrelatingRecorder(
        client, "cluster-autoscaler", clock=process.clock, correlator=event_correlator(options)
    )
    cluster = ApiCluster(client, options, process.clock, recorder, process.rng)
    process.step = "list nodes and pods"
    async with AsyncExitStack() as channels, anyio.create_task_group() as tasks:
        channel = await channels.enter_async_context(config.channel())
        find_moved = None if cloud else _find_moved(process, config, channels)
        for informer in cluster.informers:
            tasks.start_soon(informer.run)
        tasks.start_soon(recorder.run)
        for informer in cluster.informers:
            await informer.wait_synced()

        def spawn(run: Callable[[], Coroutine[Any, Any, None]]) -> None:
            tasks.start_soon(run)

        state = AutoscalerState(
            options, gates=process.gates, clock=process.clock, rng=process.rng, listers=cluster.listers
        )
        metrics = Metrics(process.serving.metrics())
        executor = Executor(
            cluster=cluster,
            cloud=ExternalProvider(channel, process.clock, timeout=config.timeout, find_moved=find_moved),
            clock=process.clock,
            spawn=spawn,
            counters=metrics,
        )
        runner = _LoopRunner(process, state, executor, cluster, metrics)
        process.serving.add_route("/debug/loop", runner.debug)
        DebugState(process.serving, cluster.informers)
        if leader_elect:
            lead = partial(run_as_leader, process, client, runner.run, name=LEASE)
            tasks.start_soon(lead)
        else:
            await runner.write_initial_status()
            tasks.start_soon(runner.run)
        await process.announce(compat=options.compat.value)
        await process.stopping.wait()
        tasks.cancel_scope.cancel()
    if not runner.started:
        return
    with anyio.move_on_after(EXIT_CLEANUP_SECONDS_MAX):
        try:
            await cluster.delete_status()
        except StatusError as error:
            process.log.warning("Status ConfigMap cannot be deleted", error=str(error))


def _built_in_cloud(process: Process, run_file: RunFile) -> CloudConfig:
    """Return the address of the built-in cloud, and the client certificate that it requires."""
    authority = run_file.document.get("ca", "")
    if not authority:
        return CloudConfig(address=run_file.grpc)
    certificate, key = credentials.certificate_paths(process.directory, process.component)
    return CloudConfig(address=run_file.grpc, cert=str(certificate), key=str(key), cacert=str(authority))


def _find_moved(
    process: Process, config: CloudConfig, channels: AsyncExitStack
) -> Callable[[], Awaitable[grpc.aio.Channel | None]]:
    """Return a function that connects to the built-in cloud if its address is not the last one.

    A channel to an earlier address is closed with the process: closing it would cancel the calls that use it.
    """
    address = config.address

    async def find() -> grpc.aio.Channel | None:
        nonlocal address
        run_file = RunFile.read(process.directory, "cloud")
        if run_file is None or run_file.grpc == address:
            return None
        address = run_file.grpc
        process.log.info("Cloud has another address", grpc=address)
        return await channels.enter_async_context(_built_in_cloud(process, run_file).channel())

    return find


async def run_with_cloud(process: Process, options: Options, groups: tuple[NodeGroup, ...]) -> None:
    """Run the autoscaler and the built-in cloud in one process; kubelets find the cloud by its run file."""
    service = CloudService(process, groups, "127.0.0.1:0")
    try:
        async with anyio.create_task_group() as tasks:
            address = await service.start(tasks)
            document = {"component": "cloud", "name": "cloud", "pid": host.current().pid(), "grpc": address}
            run_files.write(process.directory, "cloud", document)
            await run_autoscaler(process, options, CloudConfig(address=address))
            tasks.cancel_scope.cancel()
    finally:
        run_files.remove(process.directory, "cloud", host.current().pid())
        await service.stop()


class _LoopRunner:
    """Runs loops at their interval, and reports their results."""

    def __init__(
        self,
        process: Process,
        state: AutoscalerState,
        executor: Executor,
        cluster: ApiCluster,
        metrics: Metrics,
    ) -> None:
        self._process, self._state, self._executor = process, state, executor
        self._cluster, self._metrics = cluster, metrics
        self._unschedulable = anyio.Event()
        self._last: LoopResult | None = None
        self._decisions: dict[str, str] = {}
        self.started = False
        cluster.on_unschedulable(lambda: self._unschedulable.set())

    async def write_initial_status(self) -> None:
        """Write the status that the autoscaler has before its first loop."""
        self.started = True
        now = self._process.clock.now()
        if self._state.options.write_status_configmap:
            try:
                await self._cluster.write_status(initializing(now), now)
            except StatusError as error:
                self._process.log.warning("Status ConfigMap cannot be written", error=str(error))

    async def run(self) -> None:
        if not self.started:
            await self.write_initial_status()
        while True:
            started = self._process.clock.monotonic()
            observation = self._cluster.observe()
            result = self._last = await self._executor.run(run_once(self._state))
            seconds = self._process.clock.monotonic() - started
            self._metrics.after_loop(self._state, result, observation, seconds)
            self._log(result, seconds)
            await self._wait(result, seconds)

    async def _wait(self, result: LoopResult, seconds: float) -> None:
        """Wait for the rest of the interval; shorter after a change, or when a pod becomes unschedulable."""
        options = self._state.options
        if result.acted:
            await self._process.clock.sleep(min(FREQUENT_SECONDS_MIN, options.scan_interval))
            return
        with anyio.move_on_after(max(options.scan_interval - seconds, 0.0)):
            if not options.frequent_loops_enabled:
                await anyio.sleep_forever()
            await self._unschedulable.wait()
            await self._process.clock.sleep(FREQUENT_SECONDS_MIN)
        self._unschedulable = anyio.Event()

    def _log(self, result: LoopResult, seconds: float) -> None:
        """Log the decisions of a loop: at info if they differ from those of the last one, else at debug."""
        log = self._process.log
        decisions = result.decisions()
        write = log.debug if decisions == self._decisions else log.info
        self._decisions = decisions
        write("Loop ended", **decisions, seconds=f"{seconds:.3f}")
        if result.error:
            log.warning("Loop failed", error=result.error)
        if result.status_error:
            log.warning("Status ConfigMap cannot be written", error=result.status_error)
        for event in result.events:
            name = event.about.metadata.name if event.about is not None else ""
            log.info(event.message, reason=event.reason, about=name)

    async def debug(self, request: Request) -> Response:
        """Answer `GET /debug/loop`: the result of the last loop, and why each node cannot be removed."""
        from starlette.responses import JSONResponse

        state, last = self._state, self._last
        planner, now = state.planner, self._process.clock.monotonic()
        backoff = state.registry.backoff
        return JSONResponse(
            {
                "at": rfc3339(last.at.now) if last is not None else "",
                "compat": state.options.compat.value,
                "error": last.error if last is not None else "",
                "scaleUp": str(last.scale_up.result) if last is not None else "",
                "scaleDown": str(last.scale_down) if last is not None else "",
                "unneeded": planner.unneeded_names(),
                "unneededSeconds": planner.unneeded_nodes.durations(now),
                "unneededLeftSeconds": planner.unneeded_nodes.left_seconds(now),
                "unremovable": {name: str(why) for name, why in planner.unremovable.reasons.items()},
                "recheckSeconds": planner.unremovable.recheck_seconds(now),
                "recheckTimeout": state.options.unremovable_node_recheck_timeout,
                "utilization": {name: used.share for name, used in planner.utilization.items()},
                "pendingHints": sorted(state.pending_hints.nodes()),
                "heldByHints": planner.held_by_hints(),
                "lackingDevices": sorted(state.lacking_devices),
                "deleting": sorted(state.deletions.nodes()),
                "doubtfulTaints": sorted(state.doubtful_taints),
                "backedOffGroups": [name for name in sorted(state.view.groups) if backoff.status(name, now)],
                "inCooldown": state.cooldowns.in_some_group(now),
            }
        )
