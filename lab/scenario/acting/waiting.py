"""Wait for conditions: until they hold, or for a time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Final

from google.protobuf.message import Message

from nominee.lab.scenario.acting.errors import StepFailedError
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.observing.base import Condition, Observed
from nominee.lab.scenario.observing.world import World
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import AnyKind

LOOK_SECONDS: Final = 0.5
"""Between two looks at the expectations over the whole run, while no object changes."""
PROBE_SECONDS: Final = 0.05
"""Between two questions to a process."""


class Waiting:
    """Evaluates conditions until the time of a scenario is over; `check` raises if something else failed."""

    def __init__(
        self, world: World, cluster: ScenarioCluster, timeout_seconds: float, check: Callable[[], None]
    ) -> None:
        self._world, self._cluster, self._clock, self._check = world, cluster, cluster.clock, check
        self._timeout_seconds = timeout_seconds
        self._deadline = self._clock.monotonic() + timeout_seconds
        self.earlier: Callable[[Condition], Observed | None] = lambda condition: None
        """Returns how a condition held before the step, where this counts (docs/chaos.md)."""

    async def observe(self, condition: Condition) -> Observed:
        """Evaluate a condition now."""
        return await condition.observe(self._world, self._cluster)

    async def now(self, condition: Condition, *, holds: bool = True) -> Observed:
        """Evaluate a condition now; if it is not as it must be, once more when the watches have caught up.

        The watches of two kinds may lag by different times: after a `wait` for a Job, its pods may be those
        of a moment before.
        """
        observed = await self.observe(condition)
        if observed.holds is not holds and condition.watched():
            with suppress(StatusError):
                await self._world.catch_up(condition.watched())
            observed = await self.observe(condition)
        return observed

    async def until(self, condition: Condition, seconds: float) -> Observed:
        """Wait until a condition holds, also if only for a moment.

        Raises:
            StepFailedError: it does not hold in time.
        """
        deadline = min(self._clock.monotonic() + seconds, self._deadline)
        before = self.earlier(condition)
        if before is not None:
            return before
        with _Latch(self._world, condition, holds=True) as latch:
            while True:
                observed = latch.first or await self.observe(condition)
                if observed.holds:
                    return observed
                self._check()
                if self._clock.monotonic() >= deadline:
                    raise StepFailedError(f"not within {self._limit(seconds)}; observed: {observed.text}")
                await self._rest(condition, deadline - self._clock.monotonic())

    async def throughout(self, condition: Condition, seconds: float, *, must_hold: bool) -> Observed:
        """Check that a condition holds, or does not hold, for a time.

        Raises:
            StepFailedError: it does not.
        """
        await self.now(condition, holds=must_hold)
        end = self._clock.monotonic() + seconds
        with _Latch(self._world, condition, holds=not must_hold) as latch:
            while True:
                observed = latch.first or await self.observe(condition)
                if observed.holds is not must_hold:
                    raise StepFailedError(f"observed: {observed.text}")
                self._check()
                remaining = min(end, self._deadline) - self._clock.monotonic()
                if remaining <= 0:
                    break
                await self._rest(condition, remaining)
        if self._clock.monotonic() < end:
            raise StepFailedError(f"the scenario's {self._timeout_seconds:g} s are over")
        return observed

    async def _rest(self, condition: Condition, seconds_max: float) -> None:
        """Wait until a condition may have changed: objects change, processes are asked again."""
        if condition.is_about_objects:
            await self._world.wait_changed(min(LOOK_SECONDS, seconds_max))
        else:
            await self._clock.sleep(min(PROBE_SECONDS, seconds_max))

    def _limit(self, seconds: float) -> str:
        if self._clock.monotonic() >= self._deadline:
            return f"the scenario's {self._timeout_seconds:g} s"
        return f"{seconds:g} s"


class _Latch:
    """Evaluates a condition at each change and keeps the first result that is `holds`."""

    def __init__(self, world: World, condition: Condition, *, holds: bool) -> None:
        self._world, self._condition, self._holds = world, condition, holds
        self.first: Observed | None = None
        self._stack = ExitStack()

    def __enter__(self) -> _Latch:
        if self._condition.is_about_objects:
            self._stack.enter_context(self._world.listening(self._changed))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _changed(self, kind: AnyKind, old: Message | None, new: Message | None) -> None:
        changed = new if new is not None else old
        if self.first is None and (changed is None or self._condition.concerns(kind, changed)):
            observed = self._world.evaluate(self._condition)
            if observed.holds is self._holds:
                self.first = observed
