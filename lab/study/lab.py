"""The cluster of one run: create planned pods on their nodes, resize them, and record what a watch sees."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import anyio

from nominee.lab.study.observation import Trial, seen
from nominee.lab.study.plans import PlannedPod
from nominee.lab.study.stage import NAMESPACE, Stage
from nominee.localcluster.process_usage import cpu_seconds
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.process.run_files import RunFile
from nominee.machinery.runtime.clock import Clock

CONCURRENCY: Final = 20
_SCHEDULER = "default-scheduler"
_CLASS = "study-"
Placed = tuple[PlannedPod, str]
"""A pod and the name of its node; "" for a pod that the scheduler places."""
T = TypeVar("T")
_EVENTS_MAX = 50_000


class Lab:
    """A stage, and the trials whose pods are recorded."""

    def __init__(self, stage: Stage, clock: Clock) -> None:
        self.stage, self.clock = stage, clock
        self._trials: dict[str, Trial] = {}
        self._binding: Callable[[core.Pod], None] | None = None
        stage.pods.add_handler(on_add=self._saw, on_update=lambda _, new: self._saw(new))

    def _saw(self, pod: core.Pod) -> None:
        trial = self._trials.get(pod.metadata.name)
        if trial is not None:
            trial.saw(seen(pod, self.clock.monotonic()))
        if self._binding is not None:
            self._binding(pod)

    @contextmanager
    def each_change(self, saw: Callable[[core.Pod], None]) -> Iterator[None]:
        """Call `saw` with each pod that is added or updated while the block runs."""
        self._binding = saw
        try:
            yield
        finally:
            self._binding = None

    def observe(self, trials: Iterable[Trial]) -> None:
        """Record the pods of these trials, and no others."""
        self._trials = {name: trial for trial in trials for name in trial.names()}

    async def create_priorities(self, values: Iterable[int]) -> None:
        for value in sorted(set(values)):
            text = f"{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, value: {value}, "
            await self.stage.apply(text + f"metadata: {{name: {_CLASS}{value}}}}}")

    async def create(self, placed: Placed) -> None:
        """Create a pod that is bound to its node; without a node the scheduler places it."""
        await self.stage.client.create(manifest(*placed))

    async def resize(self, pod: PlannedPod) -> None:
        """Patch the pod's subresource `resize` to its desired cpu."""
        container = {"name": "c", "resources": {"requests": {"cpu": f"{pod.desired_cpu}m"}}}
        patch = {"spec": {"containers": [container]}}
        await self.stage.client.patch(kinds.POD, pod.name, NAMESPACE, patch, subresource="resize")

    async def delete(self, names: Iterable[str]) -> None:
        """Delete pods without grace; those that are gone are ignored."""

        async def delete(name: str) -> None:
            await self.stage.delete(kinds.POD, name, grace_period_seconds=0)

        await self.each(delete, list(names))

    async def delete_and_wait(self, names: Sequence[str]) -> None:
        await self.delete(names)
        await self.stage.until(
            f"{len(names)} pods are gone",
            lambda: not any(self.stage.pods.get(name, NAMESPACE) for name in names),
        )

    async def each(self, act: Callable[[T], Awaitable[object]], items: Sequence[T]) -> None:
        """Act on items, at most CONCURRENCY at once."""
        remaining = iter(items)

        async def worker() -> None:
            for item in remaining:
                await act(item)

        async with anyio.create_task_group() as tasks:
            for _ in range(min(CONCURRENCY, len(items))):
                tasks.start_soon(worker)

    def cpu_seconds(self, component: str) -> float:
        """Return the processor time of a process so far; 0 if it does not run."""
        run_file = RunFile.read(self.stage.directory, component)
        return (cpu_seconds(run_file.pid) or 0.0) if run_file is not None else 0.0

    async def count_events(self, trials: Sequence[Trial]) -> None:
        """Set each trial's number of Events that the scheduler recorded about its pods."""
        by_name = {name: trial for trial in trials for name in trial.names()}
        listed = await self.stage.client.list(kinds.EVENT, NAMESPACE, limit=_EVENTS_MAX)
        for event in listed.items:
            trial = by_name.get(event.involvedObject.name)
            if trial is not None and _SCHEDULER in (event.reportingComponent, event.source.component):
                trial.events += 1


def manifest(pod: PlannedPod, node: str) -> core.Pod:
    """Return a pod of one container; the node is set unless it is empty."""
    made = core.Pod()
    made.metadata.name, made.metadata.namespace = pod.name, NAMESPACE
    made.spec.nodeName = node
    if pod.priority:
        made.spec.priorityClassName = f"{_CLASS}{pod.priority}"
    made.spec.terminationGracePeriodSeconds = int(pod.stop_seconds) + 2
    made.metadata.annotations["nominee.dev/stop-delay"] = f"{round(pod.stop_seconds * 1000)}ms"
    container = made.spec.containers.add(name="c", image="app")
    container.resources.requests["cpu"].string = f"{pod.cpu}m"
    return made
