"""The scenario of many deferred pods: how many new pods per second the scheduler binds beside them.

The kubelet defers the resizes and is then stopped (SIGSTOP), so that the figures are the scheduler's and
the API server's. The rate without deferred pods is measured before and after the others, and the mean of
both counts: a process that warms up, or a machine that becomes busier meanwhile, then changes both sides
of a ratio.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import anyio

from nominee.lab.study.lab import Lab
from nominee.lab.study.plans import PlannedPod
from nominee.lab.study.settings import NODE_CPU, Sizes
from nominee.lab.study.stage import NAMESPACE
from nominee.lab.study.throughput_results import Condition, Rate
from nominee.machinery.api.pb import core

_SLACK = 50
"""Cpu in milli-units that stays free on a node of deferred pods: less than any of them wants."""
_CHURN_CPU = 10
_KUBELET = "kubelet-0"
_STALLED_SECONDS_MAX = 60.0
_DEFER_SECONDS_MAX = 180.0


class Throughput:
    """Measures the three conditions in one cluster; the first node of the deferred pods is `first_node`."""

    def __init__(self, lab: Lab, sizes: Sizes, seeds: Sequence[int], first_node: int) -> None:
        self._lab, self._sizes, self._seeds = lab, sizes, seeds
        self._nodes = [f"node-{first_node + number}" for number in range(sizes.deferred_nodes)]
        each = sizes.deferred_pods // sizes.deferred_nodes
        cpu = (NODE_CPU - _SLACK) // each
        self._deferred = [
            (PlannedPod(name=f"deferred-{node}-{n}", priority=0, cpu=cpu, desired_cpu=cpu + 2 * _SLACK), node)
            for node in self._nodes
            for n in range(each)
        ]

    async def run(self) -> list[Rate]:
        """Return the rates; the deferred pods are deleted at the end."""
        lab = self._lab
        lab.observe(())
        await lab.each(lab.create, self._deferred)
        names = [pod.name for pod, _ in self._deferred]
        await lab.stage.until(
            "the pods run",
            lambda: all(_phase(lab, name) == "Running" for name in names),
            limit_seconds=_DEFER_SECONDS_MAX,
        )
        churn = [(self._churn_pod(node), node) for node in self._nodes]
        await lab.each(lab.create, churn)
        await lab.stage.until("they are seen", lambda: all(_phase(lab, pod.name) for pod, _ in churn))
        await lab.stage.pause(_KUBELET)
        before = [await self._measure(seed, Condition.NONE) for seed in self._seeds]
        await self._defer_resizes()
        rates = [await self._measure(seed, Condition.QUIET) for seed in self._seeds]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._churn)
            rates += [await self._measure(seed, Condition.CHURN) for seed in self._seeds]
            tasks.cancel_scope.cancel()
        await self._take_back_resizes()
        after = [await self._measure(seed, Condition.NONE) for seed in self._seeds]
        await lab.stage.resume(_KUBELET)
        await lab.delete_and_wait([*names, *(pod.name for pod, _ in churn)])
        return [*map(_mean, before, after), *rates]

    async def _defer_resizes(self) -> None:
        """Request all resizes; stop the kubelet when they are deferred and the scheduler has tried them."""
        lab = self._lab
        await lab.stage.resume(_KUBELET)
        await lab.each(lab.resize, [pod for pod, _ in self._deferred])
        await lab.stage.until(
            "the resizes are deferred",
            lambda: all(_is_deferred(lab, pod.name) for pod, _ in self._deferred),
            limit_seconds=_DEFER_SECONDS_MAX,
        )
        await lab.stage.until("the scheduler has tried them", self._are_parked)
        await lab.stage.pause(_KUBELET)

    async def _take_back_resizes(self) -> None:
        """Request the old sizes; stop the kubelet when no resize is deferred any more."""
        lab = self._lab
        await lab.stage.resume(_KUBELET)
        await lab.each(lab.resize, [replace(pod, desired_cpu=pod.cpu) for pod, _ in self._deferred])
        await lab.stage.until(
            "no resize is deferred",
            lambda: not any(_is_deferred(lab, pod.name) for pod, _ in self._deferred),
            limit_seconds=_DEFER_SECONDS_MAX,
        )
        await lab.stage.until("the scheduler has forgotten them", self._is_empty)
        await lab.stage.pause(_KUBELET)

    async def _are_parked(self) -> bool:
        queued = await self._lab.stage.queued()
        return not queued["active"] and queued["unschedulable"] >= len(self._deferred)

    async def _is_empty(self) -> bool:
        queued = await self._lab.stage.queued()
        return not queued["active"] and not queued["backoff"] and not queued["unschedulable"]

    @staticmethod
    def _churn_pod(node: str) -> PlannedPod:
        return PlannedPod(name=f"churn-{node}", priority=0, cpu=_CHURN_CPU)

    async def _churn(self) -> None:
        """Delete and create a small pod on one node of deferred pods after another, until cancelled."""
        lab, clock = self._lab, self._lab.clock
        number = 0
        began = clock.monotonic()
        while True:
            node = self._nodes[number % len(self._nodes)]
            pod = self._churn_pod(node)
            await lab.delete([pod.name])
            await lab.create((pod, node))
            number += 1
            await clock.sleep(max(began + number * self._sizes.churn_seconds - clock.monotonic(), 0.0))

    async def _measure(self, seed: int, condition: Condition) -> Rate:
        """Create new pods of seeded sizes; the time is from the first creation to the last binding."""
        lab, rng = self._lab, random.Random(seed)
        pods = [
            PlannedPod(name=f"new-{condition.name.lower()}-{seed}-{n}", priority=0, cpu=rng.randrange(1, 20))
            for n in range(self._sizes.new_pods)
        ]
        bound: dict[str, float] = {}
        names = {pod.name for pod in pods}

        def saw(pod: core.Pod) -> None:
            if pod.metadata.name in names and pod.spec.nodeName:
                bound.setdefault(pod.metadata.name, lab.clock.monotonic())

        with lab.each_change(saw):
            began, busy = lab.clock.monotonic(), lab.cpu_seconds("scheduler")
            await lab.each(lab.create, [(pod, "") for pod in pods])
            await lab.stage.until(
                "all new pods are bound", lambda: len(bound) == len(pods), limit_seconds=_STALLED_SECONDS_MAX
            )
        rate = len(pods) / (max(bound.values()) - began)
        cpu_ms = (lab.cpu_seconds("scheduler") - busy) * 1000 / len(pods)
        await lab.delete_and_wait([pod.name for pod in pods])
        return Rate(seed=seed, condition=condition.value, pods_per_second=rate, cpu_ms=cpu_ms)


def _mean(first: Rate, second: Rate) -> Rate:
    """Return the mean of two measurements with the same seed and condition."""
    return replace(
        first,
        pods_per_second=(first.pods_per_second + second.pods_per_second) / 2,
        cpu_ms=(first.cpu_ms + second.cpu_ms) / 2,
    )


def _phase(lab: Lab, name: str) -> str:
    pod = lab.stage.pods.get(name, NAMESPACE)
    return pod.status.phase if pod is not None else ""


def _is_deferred(lab: Lab, name: str) -> bool:
    pod = lab.stage.pods.get(name, NAMESPACE)
    return pod is not None and any(
        condition.type == "PodResizePending" and condition.reason == "Deferred"
        for condition in pod.status.conditions
    )
