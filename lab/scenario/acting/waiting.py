"""Wait for conditions: until they hold, or for a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from typing import Final

import anyio
from google.protobuf.message import Message

from nominee.lab.scenario.acting.errors import StepFailedError
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.observing.base import Condition, Observed
from nominee.lab.scenario.observing.world import World
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import AnyKind

LOOK_SECONDS: Final = 0.5
"""Between two looks at the expectations over the whole run, while no object changes."""
READ_SECONDS_MAX: Final = 5.0
"""For a read of the state of a revision."""
RESULTS_MAX: Final = 100
"""Results of a condition that are kept until they are looked at."""
PROBE_SECONDS: Final = 0.05
"""Between two questions to a process."""


class Waiting:
    """Evaluates conditions until the time of a scenario is over; `check` raises if something else failed."""

    def __init__(
        self,
        world: World,
        cluster: ScenarioCluster,
        timeout_seconds: float,
        check: Callable[[], Awaitable[None]],
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
        """Evaluate a condition now; if it is not as it must be, on the state of one revision.

        Watches lag by different times: after a `wait` for a Job, its pods may be those of a moment before.
        """
        observed = await self.observe(condition)
        kinds = condition.watched()
        if observed.holds is holds or not self._world.is_mixed(kinds):
            return observed
        return await self._at(self._world.revision, condition) or observed

    async def _at(self, revision: int, condition: Condition) -> Observed | None:
        """Evaluate a condition on the state of a revision; None if it cannot be read in time."""
        with anyio.move_on_after(READ_SECONDS_MAX), suppress(StatusError):
            objects = await self._world.at(revision, condition.watched())
            return await condition.observe(objects, self._cluster)
        return None

    async def until(self, condition: Condition, seconds: float) -> Observed:
        """Wait until a condition holds, also if only for a moment.

        Raises:
            StepFailedError: it does not hold in time.
        """
        deadline = min(self._clock.monotonic() + seconds, self._deadline)
        before = self.earlier(condition)
        if before is not None:
            return before
        with Latch(self._world, condition, holds=True) as latch:
            while True:
                observed = latch.results[0][1] if latch.results else await self.observe(condition)
                if observed.holds:
                    return observed
                await self._check()
                if self._clock.monotonic() >= deadline:
                    raise StepFailedError(f"not within {self._limit(seconds)}; observed: {observed.text}")
                await self._rest(condition, deadline - self._clock.monotonic())

    async def throughout(self, condition: Condition, seconds: float, *, must_hold: bool) -> Observed:
        """Check that a condition holds, or does not hold, for a time.

        Raises:
            StepFailedError: it does not.
        """
        began, end = self._world.revision, self._clock.monotonic() + seconds
        with Latch(self._world, condition, holds=not must_hold, after=began) as latch:
            observed = await self.now(condition, holds=must_hold)
            while True:
                if observed.holds is not must_hold:
                    raise StepFailedError(f"observed: {observed.text}")
                observed = await self.first_result(latch) or observed
                if observed.holds is not must_hold:
                    continue
                await self._check()
                remaining = min(end, self._deadline) - self._clock.monotonic()
                if remaining <= 0:
                    break
                await self._rest(condition, remaining)
                if not condition.is_about_objects:
                    observed = await self.now(condition, holds=must_hold)
        if self._clock.monotonic() < end:
            raise StepFailedError(f"the scenario's {self._timeout_seconds:g} s are over")
        last = await self.observe(condition)
        return last if last.holds is must_hold else observed

    async def first_result(self, latch: Latch) -> Observed | None:
        """Return the first result that the state of its revision shows, too; remove it and those before."""
        condition = latch.condition
        is_of_one_kind = len(set(condition.watched())) == 1
        while latch.results:
            revision, observed = latch.results.popleft()
            if revision is None or (is_of_one_kind and revision > latch.after):
                return observed
            exact = await self._at(revision, condition)
            if exact is None or exact.holds is observed.holds:
                return observed
        return None

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


class Latch:
    """Evaluates a condition at each change, and keeps the results that are `holds`, with their revisions.

    A late change of before a revision (`after`) is a result of that revision.
    """

    def __init__(self, world: World, condition: Condition, *, holds: bool, after: int = 0) -> None:
        self._world, self.condition, self._holds, self.after = world, condition, holds, after
        self.results: deque[tuple[int | None, Observed]] = deque(maxlen=RESULTS_MAX)
        """The last results."""
        self._stack = ExitStack()

    def __enter__(self) -> Latch:
        if self.condition.is_about_objects:
            self._stack.enter_context(self._world.listening(self._changed))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def look(self, revision: int | None) -> None:
        """Evaluate the condition, as it is at a revision; None if that is not known."""
        observed = self._world.evaluate(self.condition)
        if observed.holds is self._holds:
            self.results.append((None if revision is None else max(revision, self.after), observed))

    def _changed(self, kind: AnyKind, old: Message | None, new: Message | None) -> None:
        changed = new if new is not None else old
        if changed is None or self.condition.concerns(kind, changed):
            self.look(self._world.change_revision)
