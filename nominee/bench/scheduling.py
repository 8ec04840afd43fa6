"""`nominee bench scheduling`: how many pods a second the real processes schedule.

A cluster of etcd, API server and scheduler is started in a directory of its own; nodes, then initial pods are
created and scheduled; then the measured pods are created as fast as can be by another process while the
scheduler works. The clock runs from the first creation to the last binding seen by a watch.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from machinery.client import connect
from machinery.clock import SystemClock
from machinery.kinds import POD
from nominee.bench.figures import (
    PERCENTILES,
    Histogram,
    difference,
    histogram,
    per_second,
    percentile,
    quantile,
    rounded,
)
from nominee.bench.machine import machine
from nominee.bench.objects import NAMESPACE
from nominee.bench.watcher import BoundPods
from nominee.http import request
from nominee.memory import pss_bytes
from nominee.supervisor.client import call
from nominee.supervisor.directory import StateDirectory

_STALLED_SECONDS_MAX = 30.0
_ATTEMPTS = "scheduler_scheduling_attempt_duration_seconds"


class BenchError(RuntimeError):
    """The benchmark could not be run; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is measured."""

    nodes: int
    init_pods: int
    pods: int
    concurrency: int


def start_cluster(directory: Path, up_options: Sequence[str]) -> None:
    """Starts the processes; BenchError with what `nominee up` said."""
    command = [
        *(sys.executable, "-P", "-m", "nominee.cli", "up", "--detach", "--dir", str(directory)),
        *("--components", "etcd,apiserver,scheduler", *up_options),
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise BenchError(answer.stderr.strip())


async def measure(directory: Path, settings: Settings) -> dict[str, Any]:
    """Runs one benchmark on a fresh cluster in `directory`; BenchError or TimeoutError when it fails."""
    clock = SystemClock()
    bound = BoundPods(clock)
    async with anyio.create_task_group() as group:
        nodes = await _create(directory, "nodes", settings.nodes, settings.concurrency)
        await group.start(lambda *, task_status: bound.run(directory, task_status=task_status))
        if settings.init_pods:
            await _create(directory, "init", settings.init_pods, settings.concurrency)
            await bound.wait_for(settings.init_pods, _STALLED_SECONDS_MAX)
        attempts = await _attempts(directory)
        bound.times.clear()

        async with await _creator(directory, "measured", settings.pods, settings.concurrency) as creator:
            assert creator.stdin is not None
            begin = clock.monotonic()
            await creator.stdin.send(b"go\n")
            await bound.wait_for(settings.pods, _STALLED_SECONDS_MAX)
            created = await _result(creator)
        times = list(bound.times)
        attempts = difference(await _attempts(directory), attempts)
        group.cancel_scope.cancel()
    await _check(directory, settings)
    return {
        "benchmark": "scheduling",
        "settings": asdict(settings),
        "throughput": _throughput(times, begin),
        "attemptLatencyMilliseconds": _latency(attempts),
        "created": {
            "nodesPerSecond": rounded(settings.nodes / nodes["seconds"], 1),
            "podsPerSecond": rounded(settings.pods / created["seconds"], 1),
        },
        "memory": _memory(directory),
        "machine": machine(),
    }


def _throughput(times: Sequence[float], begin: float) -> dict[str, Any]:
    """Pods a second: on average from the first creation to the last binding, and over one-second samples."""
    seconds = max(times) - begin
    samples = per_second(times, begin)
    return {
        "average": rounded(len(times) / seconds, 1),
        "seconds": rounded(seconds),
        **{f"p{p}": rounded(percentile(samples, p), 1) for p in PERCENTILES},
        "samples": samples,
    }


def _latency(attempts: Histogram) -> dict[str, float | None]:
    """Percentiles of successful scheduling attempts, from the scheduler's own histogram."""
    return {
        f"p{p}": rounded(None if (value := quantile(attempts, p)) is None else value * 1000)
        for p in PERCENTILES
    }


async def _attempts(directory: Path) -> Histogram:
    address = StateDirectory(directory).live_run_files()["scheduler"]["http"]
    answer = await anyio.to_thread.run_sync(request, address, "/metrics")
    return histogram(answer.text, _ATTEMPTS, {"result": "scheduled"})


def _memory(directory: Path) -> dict[str, Any]:
    cluster = call(StateDirectory(directory), "status", timeout_seconds=10.0)["cluster"]
    pids = {c["name"]: c["pid"] for c in cluster["components"]} | {"supervisor": cluster["supervisor"]["pid"]}
    sizes = {name: pss_bytes(pid) or 0 for name, pid in pids.items() if pid}
    mebibytes = {name: round(size / 2**20, 1) for name, size in sizes.items()}
    return {"pssMiB": mebibytes, "sumMiB": round(sum(sizes.values()) / 2**20, 1)}


async def _check(directory: Path, settings: Settings) -> None:
    """Every pod is bound to a node, and no node got more than it has room for."""
    per_node: dict[str, int] = {}
    async with await connect(directory, limit_seconds=10.0) as client:
        for pod in (await client.list(POD, NAMESPACE)).items:
            per_node[pod.spec.nodeName] = per_node.get(pod.spec.nodeName, 0) + 1
    total = settings.init_pods + settings.pods
    if sum(per_node.values()) != total or "" in per_node:
        raise BenchError(
            f"{per_node.get('', 0)} pods have no node, {sum(per_node.values())} of {total} are there"
        )
    if max(per_node.values()) > 40:  # 4 cpu and 100m each
        raise BenchError(f"a node of 4 cpu has {max(per_node.values())} pods of 100m")


async def _creator(directory: Path, what: str, count: int, concurrency: int) -> Process:
    """The creating process, warm and waiting for a line."""
    process = await anyio.open_process(
        [
            *(sys.executable, "-P", "-m", "nominee.bench.creator", "--dir", str(directory), "--on-stdin"),
            *("--what", what, "--count", str(count), "--concurrency", str(concurrency)),
        ],
        stderr=None,
    )
    assert process.stdout is not None
    await process.stdout.receive()
    return process


async def _result(process: Process) -> dict[str, float]:
    assert process.stdout is not None
    text = "".join([part async for part in TextReceiveStream(process.stdout)])
    if await process.wait() != 0:
        raise BenchError("the creating process failed; see its words above")
    result: dict[str, float] = json.loads(text)
    return result


async def _create(directory: Path, what: str, count: int, concurrency: int) -> dict[str, float]:
    async with await _creator(directory, what, count, concurrency) as process:
        assert process.stdin is not None
        await process.stdin.send(b"go\n")
        return await _result(process)
