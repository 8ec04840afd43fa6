"""`nominee bench scheduling`: how many pods per second the real processes schedule.

The benchmark starts etcd, API server and scheduler in a directory of their own, creates nodes and initial
pods, and waits until these are scheduled. Another process then creates the measured pods as fast as the API
server accepts them. The workload defines the nodes and pods. The measured time runs from the first creation
to the last binding that a watch sees.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio

from nominee.lab.bench.figures import (
    PERCENTILES,
    Histogram,
    difference,
    histogram,
    per_second,
    percentile,
    quantile,
    rounded,
    sample,
)
from nominee.lab.bench.load.workloads import (
    CHURN,
    CHURN_PODS_MAX,
    CLASSES,
    DEVICES,
    INIT,
    MEASURED,
    NAMESPACES,
    NODES,
    SLICES,
    TEMPLATES,
    WORKLOADS,
)
from nominee.lab.bench.machine import busy_seconds, machine
from nominee.lab.bench.processes import BenchError, Helper, Series, creators
from nominee.lab.bench.verification import placed, problems
from nominee.lab.bench.watches.watcher import BoundPods
from nominee.localcluster.own_cluster import cluster
from nominee.localcluster.process_usage import cpu_seconds, pss_bytes
from nominee.localcluster.supervisor.commands.client import call
from nominee.localcluster.supervisor.directory import StateDirectory
from nominee.machinery.api.kinds import POD
from nominee.machinery.client.api_client import connect
from nominee.machinery.process.serving_port.serving_client import ServingPort, request
from nominee.machinery.runtime.clock import SystemClock

_ATTEMPTS = "scheduler_scheduling_attempt_duration_seconds"
_ALGORITHM = "scheduler_scheduling_algorithm_duration_seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingSettings:
    """Settings of a run: a workload at a size.

    With several API servers the scheduler asks the first one, the creators and the watcher the last one.
    """

    workload: str
    nodes: int
    init_pods: int
    pods: int
    concurrency: int
    apiservers: int = 1

    @property
    def last_apiserver(self) -> str:
        """The name of the server for the creators and the watcher."""
        return "apiserver" if self.apiservers == 1 else f"apiserver-{self.apiservers - 1}"


def run(directory: Path, settings: SchedulingSettings, up_options: Sequence[str]) -> dict[str, object]:
    """Run one benchmark on a new cluster in `directory`; return the report.

    Raises:
        BenchError, ClusterStartError: a process failed, or pods are where they must not be.
        TimeoutError: no pod was bound for too long.
    """
    workload = WORKLOADS[settings.workload]
    wanted = [(NODES, settings.nodes), (INIT, settings.init_pods), (MEASURED, settings.pods)]
    wanted.insert(0, (NAMESPACES, len(workload.namespaces)))
    if workload.devices_per_node:
        wanted += [(CLASSES, 1), (TEMPLATES, 1), (SLICES, settings.nodes)]
    series = [
        Series(
            workload=workload.name,
            name=name,
            count=count,
            concurrency=settings.concurrency,
            apiserver=settings.last_apiserver,
        )
        for name, count in wanted
        if count
    ]
    if workload.churn is not None:
        paced = workload.churn_seconds
        series.append(
            Series(
                workload=workload.name,
                name=CHURN,
                count=CHURN_PODS_MAX,
                concurrency=1,
                every_seconds=paced,
                apiserver=settings.last_apiserver,
            )
        )
    options = [*workload.up_options, *up_options]
    if settings.apiservers > 1:
        options += ["--replicas", f"apiserver={settings.apiservers}"]
        options += ["--arg", "scheduler=--apiserver=apiserver-0"]
    if workload.scheduler_config is not None:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / "bench-scheduler.json"
        path.write_text(json.dumps(workload.scheduler_config), encoding="utf-8")
        options = ["--scheduler-config", str(path), *options]
    with cluster(directory, options), creators(directory, series) as by_name:
        return anyio.run(_measure, directory, settings, by_name, backend_options={"use_uvloop": True})


async def _measure(
    directory: Path, settings: SchedulingSettings, by_name: Mapping[str, Helper]
) -> dict[str, object]:
    clock = SystemClock()
    bound = BoundPods(clock)
    measured = by_name[MEASURED]
    stalled = WORKLOADS[settings.workload].stalled_seconds_max
    async with anyio.create_task_group() as group:
        if NAMESPACES in by_name:
            await _create(by_name[NAMESPACES])
        nodes = await _create(by_name[NODES])
        for name in DEVICES:
            if name in by_name:
                await _create(by_name[name])
        await group.start(
            lambda *, task_status: bound.run(directory, settings.last_apiserver, task_status=task_status)
        )
        if settings.init_pods:
            await _create(by_name[INIT])
            await bound.wait_for(settings.init_pods, stalled)
        before = await _readings(directory)
        bound.times.clear()
        cpu, busy = _cpu_seconds(directory, measured), busy_seconds()
        begin = clock.monotonic()
        if CHURN in by_name:
            by_name[CHURN].go()
        measured.go()
        await bound.wait_for(settings.pods, stalled)
        times = list(bound.times)
        busy = busy_seconds() - busy
        spent = _cpu_seconds(directory, measured)
        cpu = {name: seconds - cpu[name] for name, seconds in spent.items()}
        capacity = (max(times) - begin) * len(os.sched_getaffinity(0))
        created = await anyio.to_thread.run_sync(measured.receive)
        after = await _readings(directory)
        group.cancel_scope.cancel()
    pods = await _check(directory, settings)
    return {
        "benchmark": "scheduling",
        "settings": asdict(settings),
        "throughput": _throughput(times, begin),
        "reference": {"kube-scheduler 1.36.2": _reference(settings)},
        "attemptLatencyMilliseconds": _latency(difference(after.attempts, before.attempts)),
        "schedulingAlgorithm": _algorithm(before, after, max(times) - begin),
        "created": {
            "nodesPerSecond": rounded(nodes, 1),
            "podsPerSecond": rounded(created, 1),
        },
        "pods": pods,
        "cpuMillisecondsPerPod": {
            name: rounded(seconds * 1000 / settings.pods) for name, seconds in cpu.items()
        },
        "memory": _memory(directory),
        "machine": machine() | {"busyElsewhere": rounded((busy - sum(cpu.values())) / capacity, 2)},
    }


def _reference(settings: SchedulingSettings) -> Mapping[str, float] | None:
    """Return pods/s of kube-scheduler 1.36.2 at this size on two cores; None if it was not measured."""
    size = (settings.nodes, settings.init_pods, settings.pods)
    found = WORKLOADS[settings.workload].reference.get(size)
    return None if found is None else {"lowest": found[0], "highest": found[1]}


async def _create(creator: Helper) -> float:
    """Let a creator create its series; return how many objects it created a second."""
    creator.go()
    per_second: float = await anyio.to_thread.run_sync(creator.receive)
    return per_second


def _throughput(times: Sequence[float], begin: float) -> dict[str, object]:
    """Return pods per second: the average, and percentiles of one-second samples.

    The measured time runs from the first creation to the last binding.
    """
    seconds = max(times) - begin
    samples = per_second(times, begin)
    return {
        "average": rounded(len(times) / seconds, 1),
        "seconds": rounded(seconds),
        **{f"p{p}": rounded(percentile(samples, p), 1) for p in PERCENTILES},
        "samples": samples,
    }


def _latency(attempts: Histogram) -> dict[str, float | None]:
    """Return percentiles of the scheduler's histogram of successful scheduling attempts."""
    return {
        f"p{p}": rounded(None if (value := quantile(attempts, p)) is None else value * 1000)
        for p in PERCENTILES
    }


@dataclass(frozen=True, slots=True)
class _Readings:
    """Readings of the scheduler's metrics. `algorithm` has seconds, and the number of cycles."""

    attempts: Histogram
    algorithm_seconds: float
    cycles: float


async def _readings(directory: Path) -> _Readings:
    address = StateDirectory(directory).live_run_files()["scheduler"]["http"]
    port = ServingPort.of(address, directory)
    text = (await anyio.to_thread.run_sync(request, port, "/metrics")).text
    return _Readings(
        histogram(text, _ATTEMPTS, {"result": "scheduled"}),
        sample(text, f"{_ALGORITHM}_sum"),
        sample(text, f"{_ALGORITHM}_count"),
    )


def _algorithm(before: _Readings, after: _Readings, seconds: float) -> dict[str, float | None]:
    """Return the figures that KEP-5278 limits: attempts per second, and seconds per scheduling cycle."""
    cycles = after.cycles - before.cycles
    spent = after.algorithm_seconds - before.algorithm_seconds
    return {
        "attemptsPerSecond": rounded(cycles / seconds, 1),
        "meanMilliseconds": rounded(spent * 1000 / cycles if cycles else None),
    }


def _pids(directory: Path) -> dict[str, int]:
    cluster = call(StateDirectory(directory), "status", timeout_seconds=10.0)["cluster"]
    return {
        c["name"]: c["pid"] for c in [*cluster["components"], {"name": "supervisor", **cluster["supervisor"]}]
    }


def _cpu_seconds(directory: Path, creator: Helper) -> dict[str, float]:
    """Return the processor time so far: of the processes under test, and of those that measure."""
    pids = _pids(directory) | {"creator": creator.pid, "watcher": os.getpid()}
    return {name: cpu_seconds(pid) or 0.0 for name, pid in pids.items()}


def _memory(directory: Path) -> dict[str, object]:
    sizes = {name: pss_bytes(pid) or 0 for name, pid in _pids(directory).items()}
    mebibytes = {name: round(size / 2**20, 1) for name, size in sizes.items()}
    return {"pssMiB": mebibytes, "sumMiB": round(sum(sizes.values()) / 2**20, 1)}


async def _check(directory: Path, settings: SchedulingSettings) -> dict[str, int]:
    """Check the pods against the workload; return how many pods of each kind there are.

    Raises:
        BenchError: a pod is where it must not be.
    """
    async with await connect(directory, limit_seconds=10.0) as client:
        found = [placed(pod.metadata.name, pod.spec.nodeName) for pod in (await client.list(POD)).items]
    workload = WORKLOADS[settings.workload]
    wrong = problems(workload, settings.init_pods, settings.pods, found)
    if wrong:
        raise BenchError("; ".join(wrong[:10]))
    bound = Counter(each.series for each in found if each.node)
    return {
        "bound": bound[MEASURED],
        "evicted": settings.init_pods - bound[INIT],
        "unschedulable": sum(not each.node for each in found),
    }
