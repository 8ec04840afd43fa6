"""Observe an undisturbed run: the failpoints and calls of each process, and the kinds that change."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from nominee.lab.chaos.cases.observations import Activity
from nominee.lab.chaos.cases.tolerance import is_among
from nominee.lab.chaos.perturbing import Points, points
from nominee.lab.history.revision import Revision
from nominee.lab.scenario.acting.control import Launch
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.format.model import Scenario
from nominee.localcluster.cluster import ClusterError

SAMPLE_SECONDS = 1.0
_COUNTING = "0%delay(0)"
"""A fault that never acts; calls are counted while there is one."""
_WATCH = ".Watch"


class ActivityObserver:
    """Asks the processes of a cluster again and again: one may start late, or end early."""

    def __init__(self, cluster: ScenarioCluster) -> None:
        self._cluster = cluster
        self._before: Points = {}
        self._hits: dict[str, dict[str, int]] = {}
        self._calls: dict[str, dict[str, int]] = {}
        self._former: dict[str, dict[str, int]] = {}

    async def begin(self) -> None:
        """Note the state before the run, and count calls."""
        self._before = await points(self._cluster)
        for process in self._before:
            await self._count_calls(process)
            self._former[process] = await self._counts(process)

    async def watch(self) -> None:
        """Look at the processes until cancelled."""
        while True:
            await self._cluster.clock.sleep(SAMPLE_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Note the counts of each process that runs; those of a process that was restarted are smaller."""
        for process, found in (await points(self._cluster)).items():
            before = self._before.get(process, {})
            hits = self._hits.setdefault(process, {})
            for name, point in found.items():
                former = before[name].hits if name in before else 0
                count = point.hits - former if point.hits >= former else point.hits
                if count > hits.get(name, 0):
                    hits[name] = count
            if process not in self._calls:
                await self._count_calls(process)
            calls = self._calls.setdefault(process, {})
            former_calls = self._former.get(process, {})
            for name, count in (await self._counts(process)).items():
                former = 0 if _WATCH in name else former_calls.get(name, 0)  # a watch may be open before
                calls[name] = max(calls.get(name, 0), count - former)

    async def _count_calls(self, process: str) -> None:
        with suppress(ClusterError):
            await self._cluster.inject_fault(process, _COUNTING)

    async def _counts(self, process: str) -> dict[str, int]:
        try:
            found = (await self._cluster.call_faults(process)).calls
        except ClusterError:
            return {}
        counts: dict[str, int] = {}
        for each in found:
            # A fault of calls to `apiserver` covers all API servers.
            server = each.to.partition("-")[0]
            name = ".".join(part for part in (server, each.method, each.resource) if part)
            counts[name] = counts.get(name, 0) + each.count
        return counts

    async def end(self, scenario: Scenario, changes: Iterable[Revision]) -> Activity:
        """Return the activity; `changes` are the writes since the scenario began."""
        await self.look()
        return Activity(
            hits={
                process: {name: count for name, count in hits.items() if count}
                for process, hits in self._hits.items()
            },
            calls={
                process: {name: count for name, count in calls.items() if count > 0}
                for process, calls in self._calls.items()
            },
            launches=_launches(scenario, [each for each in self._hits if each not in self._before]),
            kinds=sorted({each.kind.group_resource for each in changes if each.kind is not None}),
        )


def _launches(scenario: Scenario, processes: list[str]) -> dict[str, int]:
    """Return the first step that starts each of these processes."""
    found: dict[str, int] = {}
    for number, step in enumerate(scenario.steps, start=1):
        if isinstance(step.action, Launch):
            for process in processes:
                if is_among(process, {step.action.component}):
                    found.setdefault(process, number)
    return found
