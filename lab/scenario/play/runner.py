"""Play a scenario on a cluster: steps in order, expectations over the whole run, invariants at the end.

The runner knows neither processes nor real time: everything comes from the `ScenarioCluster`, so that the
same scenario runs on real processes and in a simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import anyio
from google.protobuf.message import Message

from nominee.lab.scenario.clusters.cluster import ScenarioCluster
from nominee.lab.scenario.format import paths
from nominee.lab.scenario.format.condition import Condition
from nominee.lab.scenario.format.model import Action, Background, Expect, Mode, Scenario, Step, Wait
from nominee.lab.scenario.format.substitution import substituted
from nominee.lab.scenario.play import probes
from nominee.lab.scenario.play.actions import Actions, StepFailedError
from nominee.lab.scenario.play.cleaning import clean
from nominee.lab.scenario.play.description import action_text, condition_text
from nominee.lab.scenario.play.evaluation import Observed
from nominee.lab.scenario.play.narration import Changes, Narrator
from nominee.lab.scenario.play.world import World, is_about_objects, watched_kinds
from nominee.lab.scenario.result import Outcome, ScenarioResult, StepResult, Violation
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.kinds import AnyKind

LOOK_SECONDS = 0.5
"""Between two looks at the expectations over the whole run, while no object changes."""
PROBE_SECONDS = 0.05
"""Between two questions to a process."""


async def run(
    scenario: Scenario,
    cluster: ScenarioCluster,
    narrate: Narrator,
    *,
    first: Sequence[Action] = (),
    failpoint_components: Sequence[str] = (),
    clean_up: bool = False,
) -> ScenarioResult:
    """Play a scenario and return its result.

    `first`: actions before the first step, such as failpoints that an exploration arms.
    `failpoint_components`: the processes whose failpoint hits the result reports. `clean_up`: restore the
    cluster for another scenario.

    Raises:
        NotCleanError: it cannot be restored.
    """
    conditions = [background.condition for background in scenario.background]
    conditions += [s.action.condition for s in scenario.steps if isinstance(s.action, Wait | Expect)]
    narrate.heading(f"{scenario.name}: {scenario.title}" if scenario.title else scenario.name)
    world = World(cluster.client, cluster.clock, watched_kinds(conditions))
    problem = ""
    async with anyio.create_task_group() as tasks:
        await world.open(tasks)
        run = Run(scenario, cluster, world, narrate)
        with world.listening(Changes(narrate.saw)):
            result = await run.play(tasks, first, failpoint_components)
            if clean_up and result.held:
                try:
                    await clean(cluster, run.actions, scenario)
                except (ClusterError, StatusError) as error:
                    problem = str(error)
        tasks.cancel_scope.cancel()
    if problem:
        raise NotCleanError(result, problem)
    return result


class NotCleanError(Exception):
    """The cluster could not be restored after a scenario; it has the scenario's result."""

    def __init__(self, result: ScenarioResult, problem: str) -> None:
        super().__init__(f"the cluster cannot be used for another scenario: {problem}")
        self.result = result


class Run:
    """One run of a scenario."""

    def __init__(self, scenario: Scenario, cluster: ScenarioCluster, world: World, narrate: Narrator) -> None:
        self._scenario, self._cluster, self._world, self._narrate = scenario, cluster, world, narrate
        self._clock = cluster.clock
        self._began = self._clock.monotonic()
        self._deadline = self._began + scenario.timeout_seconds
        self.variables: dict[str, str] = {}
        self._results: list[StepResult] = []
        self._broken: list[Violation] = []
        self.actions = Actions(cluster, world)

    async def play(
        self, tasks: anyio.abc.TaskGroup, first: Sequence[Action], failpoint_components: Sequence[str]
    ) -> ScenarioResult:
        """Perform the steps until one fails; check the invariants."""
        outcome, reason = Outcome.PASSED, ""
        with ExitStack() as stack:
            for background in self._scenario.background:
                self._watch_over(background, stack, tasks)
            try:
                for action in first:
                    self._narrate.act(action_text(action))
                    await self.actions.perform(action)
                for number, step in enumerate(self._scenario.steps, start=1):
                    await self._step(number, step)
                self._check_background()
            except StepFailedError as error:
                outcome, reason = Outcome.FAILED, str(error)
            except (StatusError, ClusterError) as error:
                outcome, reason = Outcome.ERROR, str(error)
        hits = await self._hits(failpoint_components)
        violations = [*self._broken, *await self._invariants()]
        if violations and outcome is Outcome.PASSED:
            outcome, reason = Outcome.FAILED, violations[0].message
        for violation in violations:
            self._narrate.failed(f"{violation.invariant}: {violation.message}")
        return ScenarioResult(
            scenario=self._scenario.name,
            title=self._scenario.title,
            section=self._scenario.section,
            file=self._scenario.file,
            outcome=outcome,
            reason=reason,
            seconds=self._clock.monotonic() - self._began,
            checks=sum(
                step.is_check and result.outcome is Outcome.PASSED
                for step, result in zip(self._scenario.steps, self._results, strict=False)
            ),
            steps=tuple(self._results),
            violations=tuple(violations),
            failpoints=hits,
        )

    async def _invariants(self) -> Sequence[Violation]:
        try:
            return await self._cluster.violations(self._scenario.except_invariants)
        except ClusterError as error:
            return [Violation(invariant="history", message=str(error))]

    async def _hits(self, components: Sequence[str]) -> dict[str, dict[str, int]]:
        hits = {}
        for component in components:
            try:
                points = await self._cluster.failpoints(component)
            except ClusterError:
                continue
            hits[component] = {point.name: point.hits for point in points if point.hits}
        return hits

    # Steps

    async def _step(self, number: int, step: Step) -> None:
        action = substituted(step.action, self.variables)
        text = substituted(step.name, self.variables) or action_text(action)
        began = self._clock.monotonic()
        if isinstance(action, Wait) and not step.name:
            self._narrate.waits(text)
        elif not step.is_check:
            self._narrate.act(text)
        outcome, observation = Outcome.ERROR, ""
        try:
            observation = await self._perform(step, action)
            self._check_background()
            outcome = Outcome.PASSED
        except StepFailedError as error:
            outcome, observation = Outcome.FAILED, str(error)
            raise StepFailedError(self._failure(number, step, text, observation)) from None
        except (StatusError, ClusterError) as error:
            observation = str(error)
            raise ClusterError(self._failure(number, step, text, observation)) from None
        finally:
            result = StepResult(
                number=number,
                verb=step.verb,
                name=text,
                line=step.line,
                started=began - self._began,
                seconds=self._clock.monotonic() - began,
                outcome=outcome,
                observation=observation,
            )
            self._results.append(result)
        if step.is_check:
            self._narrate.held(text)

    def _failure(self, number: int, step: Step, text: str, observation: str) -> str:
        where = f"{self._scenario.file}:{step.line}" if self._scenario.file else f"line {step.line}"
        message = f"step {number} ({step.verb}, {where}): {text}: {observation}"
        self._narrate.failed(message)
        return message

    async def _perform(self, step: Step, action: Action) -> str:
        match action:
            case Wait():
                observed = await self._until(action.condition, action.seconds)
            case Expect(mode=Mode.NOW):
                observed = await self._observe(action.condition)
                if not observed.holds:
                    raise StepFailedError(f"observed: {observed.text}")
            case Expect(mode=Mode.EVENTUALLY):
                observed = await self._until(action.condition, action.seconds)
            case Expect():
                observed = await self._throughout(action)
            case _:
                return await self.actions.perform(action)
        self._save(step, observed)
        return observed.text

    def _save(self, step: Step, observed: Observed) -> None:
        for name, path in step.save.items():
            values = paths.find(path, observed.found) if observed.found is not None else []
            if not values:
                raise StepFailedError(f"cannot save {name}: {path} is unset")
            self.variables[name] = values[0] if isinstance(values[0], str) else str(values[0])

    # Conditions

    async def _observe(self, condition: Condition) -> Observed:
        return await probes.evaluate(condition, self._world, self._cluster)

    async def _until(self, condition: Condition, seconds: float) -> Observed:
        """Wait until a condition holds, also if only for a moment.

        Raises:
            StepFailedError: it does not hold in time.
        """
        deadline = min(self._clock.monotonic() + seconds, self._deadline)
        with _Latch(self._world, condition, holds=True) as latch:
            while True:
                observed = latch.first or await self._observe(condition)
                if observed.holds:
                    return observed
                self._check_background()
                if self._clock.monotonic() >= deadline:
                    raise StepFailedError(f"not within {self._limit(seconds)}; observed: {observed.text}")
                await self._rest(condition, deadline - self._clock.monotonic())

    async def _throughout(self, action: Expect) -> Observed:
        """Check that a condition holds, or does not hold, for a time.

        Raises:
            StepFailedError: it does not.
        """
        end = self._clock.monotonic() + action.seconds
        must_hold = action.mode is Mode.ALWAYS
        with _Latch(self._world, action.condition, holds=not must_hold) as latch:
            while True:
                observed = latch.first or await self._observe(action.condition)
                if observed.holds is not must_hold:
                    raise StepFailedError(f"observed: {observed.text}")
                self._check_background()
                remaining = min(end, self._deadline) - self._clock.monotonic()
                if remaining <= 0:
                    break
                await self._rest(action.condition, remaining)
        if self._clock.monotonic() < end:
            raise StepFailedError(f"the scenario's {self._scenario.timeout_seconds:g} s are over")
        return observed

    async def _rest(self, condition: Condition, seconds_max: float) -> None:
        """Wait until a condition may have changed: objects change, processes are asked again."""
        if is_about_objects(condition):
            await self._world.wait_changed(min(LOOK_SECONDS, seconds_max))
        else:
            await self._clock.sleep(min(PROBE_SECONDS, seconds_max))

    def _limit(self, seconds: float) -> str:
        if self._clock.monotonic() >= self._deadline:
            return f"the scenario's {self._scenario.timeout_seconds:g} s"
        return f"{seconds:g} s"

    # Expectations over the whole run

    def _watch_over(self, background: Background, stack: ExitStack, tasks: anyio.abc.TaskGroup) -> None:
        must_hold = background.mode is Mode.ALWAYS
        name = background.name or f"{background.mode.value} {condition_text(background.condition)}"

        def judge(observed: Observed) -> None:
            if observed.holds is not must_hold and all(each.invariant != name for each in self._broken):
                self._broken.append(Violation(invariant=name, message=f"observed: {observed.text}"))

        if is_about_objects(background.condition):

            def changed(_kind: AnyKind, _old: Message | None, _new: Message | None) -> None:
                judge(self._world.evaluate(background.condition))

            stack.enter_context(self._world.listening(changed))
            judge(self._world.evaluate(background.condition))
        else:
            tasks.start_soon(self._poll, background.condition, judge)

    async def _poll(self, condition: Condition, judge: Callable[[Observed], None]) -> None:
        while True:
            judge(await self._observe(condition))
            await self._clock.sleep(PROBE_SECONDS)

    def _check_background(self) -> None:
        if self._broken:
            first = self._broken[0]
            raise StepFailedError(f"during the run: {first.invariant}: {first.message}")


class _Latch:
    """Evaluates a condition at each change and keeps the first result that is `holds`."""

    def __init__(self, world: World, condition: Condition, *, holds: bool) -> None:
        self._world, self._condition, self._holds = world, condition, holds
        self.first: Observed | None = None
        self._stack = ExitStack()

    def __enter__(self) -> _Latch:
        if is_about_objects(self._condition):
            self._stack.enter_context(self._world.listening(self._changed))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _changed(self, _kind: AnyKind, _old: Message | None, _new: Message | None) -> None:
        if self.first is None:
            observed = self._world.evaluate(self._condition)
            if observed.holds is self._holds:
                self.first = observed
