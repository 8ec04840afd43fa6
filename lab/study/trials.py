"""The scenarios with trials: crashes of the scheduler, long grace periods, the example of four pods.

The trials of all seeds run at the same time, each on a node of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from nominee.lab.study.lab import Lab
from nominee.lab.study.observation import Seen, Trial, TrialResult, seen
from nominee.lab.study.plans import PlannedPod, draw, draw_four_pods
from nominee.lab.study.settings import NO_CRASH, VICTIMS_TERMINATING, Sizes
from nominee.lab.study.stage import NAMESPACE, StageError

SETS = 3
"""Sets of nodes, used in turn: the pods of the last round may still be stopping on theirs."""
_GATHER_SECONDS = 1.0
_REACH_SECONDS_MAX = 8.0
_ACTIVITY_SECONDS = (0.4, 0.8)
"""When the fillers are deleted, in seconds after the first eviction of every trial."""

Fault = Callable[[Sequence[Trial]], Awaitable[None]]


class Trials:
    """Runs rounds of trials in one cluster."""

    def __init__(self, lab: Lab, sizes: Sizes, seeds: Sequence[int]) -> None:
        self._lab, self._sizes, self._seeds = lab, sizes, seeds
        self._rounds = 0

    async def crash(self, point: str) -> list[TrialResult]:
        """Kill the scheduler at a point of each trial's preemption, and start it again."""
        prefix = f"crash{self._rounds}"
        trials = [
            Trial(draw(seed, f"{prefix}-{seed}", self._sizes.crash_stop_seconds), point)
            for seed in self._seeds
        ]
        if point not in (NO_CRASH, VICTIMS_TERMINATING):
            await self._lab.stage.failpoint("scheduler", point, "pause")

        async def kill(trials: Sequence[Trial]) -> None:
            if point == NO_CRASH:
                return
            if point == VICTIMS_TERMINATING:
                await self._evictions_began(trials)
            else:
                await self._gather(point, len(trials))
            await self._lab.stage.stop("scheduler", kill=True)
            changed = [trial.plan.fillers[0].name for trial in trials if trial.plan.changes_while_down]
            await self._lab.delete(changed)
            await self._lab.stage.start("scheduler")

        return await self._round(trials, kill)

    async def grace(self) -> list[TrialResult]:
        """Delete other pods of the node while victims with long grace periods terminate."""
        prefix = f"grace{self._rounds}"
        trials = [
            Trial(draw(seed, f"{prefix}-{seed}", self._sizes.grace_stop_seconds), "") for seed in self._seeds
        ]

        async def disturb(trials: Sequence[Trial]) -> None:
            await self._evictions_began(trials)
            began = self._lab.clock.monotonic()
            for number, seconds in enumerate(_ACTIVITY_SECONDS):
                await self._lab.clock.sleep(max(began + seconds - self._lab.clock.monotonic(), 0.0))
                await self._lab.delete(trial.plan.fillers[number].name for trial in trials)

        return await self._round(trials, disturb)

    async def four_pods(self) -> list[TrialResult]:
        """Run the example of "Risk of Additional Preemption"."""
        prefix = f"four{self._rounds}"
        trials = [Trial(draw_four_pods(seed, f"{prefix}-{seed}"), "") for seed in self._seeds]

        async def undisturbed(trials: Sequence[Trial]) -> None:
            return None

        return await self._round(trials, undisturbed)

    async def _round(self, trials: Sequence[Trial], fault: Fault) -> list[TrialResult]:
        lab, first = self._lab, (self._rounds % SETS) * len(self._seeds)
        self._rounds += 1
        lab.observe(trials)
        placed = [
            (pod, f"node-{first + index}") for index, trial in enumerate(trials) for pod in trial.plan.pods
        ]
        await lab.each(lab.create, placed)
        await lab.stage.until("all pods run", lambda: all(self._runs(pod) for pod, _ in placed))
        # Pods that only want more, and never get it: their resizes are deferred before the trial begins.
        waiting = [pod for trial in trials for pod in trial.plan.candidates if pod.desired_cpu]
        await lab.each(lab.resize, waiting)
        await lab.stage.until("their resizes are deferred", lambda: all(map(self._is_deferred, waiting)))
        for trial in trials:
            trial.began = lab.clock.monotonic()
        await lab.each(lab.resize, [trial.plan.resizer for trial in trials])
        await fault(trials)
        await self._settle(trials)
        now = lab.clock.monotonic()
        await lab.count_events(trials)
        results = [trial.result(now, self._sizes.fallback_seconds) for trial in trials]
        await lab.delete_and_wait([pod.name for pod, _ in placed])
        return results

    def _state(self, pod: PlannedPod) -> Seen | None:
        found = self._lab.stage.pods.get(pod.name, NAMESPACE)
        return None if found is None else seen(found, 0.0)

    def _runs(self, pod: PlannedPod) -> bool:
        state = self._state(pod)
        return state is not None and state.cpu == pod.cpu

    def _is_deferred(self, pod: PlannedPod) -> bool:
        state = self._state(pod)
        return state is not None and state.deferred

    async def _settle(self, trials: Sequence[Trial]) -> None:
        """Wait until every resize is done and no pod is terminating, within the limit of a trial."""
        try:
            await self._lab.stage.until(
                "every resize is done",
                lambda: self._done(trials),
                limit_seconds=self._sizes.trial_seconds_max,
            )
        except StageError:
            return

    def _done(self, trials: Sequence[Trial]) -> bool:
        return all(trial.resized_at() is not None for trial in trials) and not self._terminating(trials)

    def _terminating(self, trials: Sequence[Trial]) -> bool:
        names = {pod.name for trial in trials for pod in trial.plan.candidates}
        return any(
            pod.metadata.HasField("deletionTimestamp")
            for pod in self._lab.stage.pods.list(NAMESPACE)
            if pod.metadata.name in names
        )

    async def _evictions_began(self, trials: Sequence[Trial]) -> None:
        try:
            await self._lab.stage.until(
                "every trial has a victim",
                lambda: all(trial.evicted() for trial in trials),
                limit_seconds=_REACH_SECONDS_MAX,
            )
        except StageError:
            return

    async def _gather(self, point: str, count: int) -> None:
        """Wait until as many preemptions as possible are held at a failpoint.

        A failpoint of the scheduling cycle holds one pod, those of a preemption one or more for each resize.

        Raises:
            StageError: the failpoint was not reached.
        """
        stage = self._lab.stage

        async def waiting() -> int:
            return await stage.waiting_at("scheduler", point)

        await stage.until(f"the scheduler reaches {point}", waiting, limit_seconds=_REACH_SECONDS_MAX)
        try:
            await stage.until(
                "all trials are held", lambda: _at_least(waiting, count), limit_seconds=_GATHER_SECONDS
            )
        except StageError:
            return


async def _at_least(read: Callable[[], Awaitable[int]], count: int) -> bool:
    return await read() >= count
