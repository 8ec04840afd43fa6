"""Play a scenario on a cluster: steps in order, expectations over the whole run, invariants at the end.

The runner knows neither processes nor real time: everything comes from the `ScenarioCluster`, so that the
same scenario runs on real processes and in a simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import chain, filterfalse, groupby

import anyio

from nominee.lab.scenario.acting.base import Action, Performed
from nominee.lab.scenario.acting.errors import StepFailedError
from nominee.lab.scenario.acting.stage import Stage
from nominee.lab.scenario.acting.waiting import PROBE_SECONDS, Latch, Waiting
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.fields import paths
from nominee.lab.scenario.fields.substitution import substituted
from nominee.lab.scenario.format.model import Background, Scenario, Step
from nominee.lab.scenario.measures.collector import Collector, conditions_of
from nominee.lab.scenario.observing.base import Condition, Observed
from nominee.lab.scenario.observing.world import World, watched_kinds
from nominee.lab.scenario.play.cleaning import clean
from nominee.lab.scenario.play.narration import Changes, Narrator
from nominee.lab.scenario.result import OBJECTS_MAX, Outcome, ScenarioResult, StepResult, Violation
from nominee.lab.scenario.steps.expect import Mode
from nominee.localcluster.cluster import ClusterError
from nominee.machinery.api.errors import StatusError
from nominee.machinery.runtime import logs

_log = logs.get()


async def run(
    scenario: Scenario,
    cluster: ScenarioCluster,
    narrate: Narrator,
    *,
    first: Sequence[Action] = (),
    clean_up: bool = False,
) -> ScenarioResult:
    """Play a scenario and return its result.

    `first`: actions before the first step, such as failpoints that an exploration arms.
    `clean_up`: restore the cluster for another scenario.

    Raises:
        NotCleanError: it cannot be restored.
    """
    conditions = [background.condition for background in scenario.background]
    conditions += [condition for step in scenario.steps for condition in step.action.conditions]
    narrate.heading(f"{scenario.name}: {scenario.title}" if scenario.title else scenario.name)
    for text in scenario.left_out:
        narrate.saw(f"left out, another program does not answer: {text}")
    conditions += conditions_of(scenario.measures)
    world = World(cluster.client, cluster.clock, watched_kinds(conditions))
    problem = ""
    async with anyio.create_task_group() as tasks:
        await world.open(tasks)
        run = Run(scenario, cluster, world, narrate)
        with world.listening(Changes(narrate.saw)):
            result = await run.play(tasks, first)
            if clean_up and result.held:
                try:
                    await clean(run.stage, scenario)
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
    """One run of a scenario.

    A violation that `is_accepted` is in the result, and does not end the run.
    """

    def __init__(
        self,
        scenario: Scenario,
        cluster: ScenarioCluster,
        world: World,
        narrate: Narrator,
        is_accepted: Callable[[Violation], bool] = lambda violation: False,
    ) -> None:
        self._scenario, self._cluster, self._world, self._narrate = scenario, cluster, world, narrate
        self._is_accepted = is_accepted
        self._clock = cluster.clock
        self._began = self._clock.monotonic()
        self.variables: dict[str, str] = {}
        self._results: list[StepResult] = []
        self._broken: list[Violation] = []
        self._latches: list[tuple[str, Latch]] = []
        self._at_fault: list[str] = []
        """The objects of failed steps."""
        waiting = Waiting(world, cluster, scenario.timeout_seconds, self._check_background)
        self.stage = Stage(cluster, world, waiting)
        self._collector = Collector(scenario.measures, world, self._clock)

    async def play(
        self,
        tasks: anyio.abc.TaskGroup,
        first: Sequence[Action],
        failpoint_components: Sequence[str] = (),
    ) -> ScenarioResult:
        """Perform the steps until one fails; check the invariants.

        `failpoint_components`: the processes whose failpoint hits the result reports.
        """
        outcome, reason = Outcome.PASSED, ""
        with ExitStack() as stack:
            stack.enter_context(self._world.listening(self._collector.on_change))
            for background in self._scenario.background:
                self._watch_over(background, stack, tasks)
            try:
                for action in first:
                    self._act(action.describe())
                    await action.perform(self.stage)
                numbered = enumerate(self._scenario.steps, start=1)
                for _, copies in groupby(numbered, key=_origin):
                    await self._together(list(copies))
                await self._check_background()
            except StepFailedError as error:
                outcome, reason = Outcome.FAILED, str(error)
            except (StatusError, ClusterError) as error:
                outcome, reason = Outcome.ERROR, str(error)
        await self._judge_background()
        measurements = self._collector.results()
        hits = await self._hits(failpoint_components)
        violations = list(dict.fromkeys([*self._broken, *await self._invariants()]))
        unaccepted = [*filterfalse(self._is_accepted, violations)]
        if unaccepted and outcome is Outcome.PASSED:
            outcome, reason = Outcome.FAILED, unaccepted[0].message
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
            objects=_distinct(*(each.objects for each in violations), self._at_fault),
            measurements=measurements,
            failpoints=hits,
            left_out=self._scenario.left_out,
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

    async def _together(self, copies: Sequence[tuple[int, Step]]) -> None:
        """Perform copies of a step for several variants at the same time.

        Raises:
            StepFailedError, StatusError, ClusterError: of the first that failed, when all have ended.
        """
        problems: dict[int, StepFailedError | StatusError | ClusterError] = {}

        async def perform(number: int, step: Step) -> None:
            try:
                await self._step(number, step)
            except (StepFailedError, StatusError, ClusterError) as error:
                problems[number] = error

        async with anyio.create_task_group() as tasks:
            for number, step in copies:
                tasks.start_soon(perform, number, step)
        self._results.sort(key=lambda result: result.number)
        if problems:
            raise problems[min(problems)]

    async def _step(self, number: int, step: Step) -> None:
        action = substituted(step.action, self.variables)
        text = substituted(step.name, self.variables) or action.describe()
        began = self._clock.monotonic()
        if action.is_wait and not step.name:
            self._narrate.waits(text)
        elif not step.is_check:
            self._act(text)
        outcome, observation = Outcome.ERROR, ""
        self._collector.on_step(step.name)
        try:
            performed = await self._perform(step, action)
            observation = performed.text
            await self._check_background()
            outcome = Outcome.PASSED
        except StepFailedError as error:
            outcome, observation = Outcome.FAILED, str(error)
            self._at_fault += [
                subject for each in action.conditions for subject in each.subjects(self._world)
            ]
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
                started_seconds=began - self._began,
                seconds=self._clock.monotonic() - began,
                outcome=outcome,
                observation=observation,
            )
            self._results.append(result)
        if step.is_check:
            self._narrate.held(text)

    async def _perform(self, step: Step, action: Action) -> Performed:
        """Perform a step; one that may fail is passed over."""
        may_fail = self._scenario.checks_may_fail if step.is_check else self._scenario.steps_may_fail
        try:
            performed = await action.perform(self.stage)
            self._save(step, performed)
            return performed
        except (StepFailedError, StatusError, ClusterError) as error:
            if not may_fail:
                raise
            return Performed(text=f"passed over: {error}")

    def _act(self, text: str) -> None:
        """Report a step that changes something, also in the log: `nominee history` shows it as a mark."""
        self._narrate.act(text)
        _log.info("Step", text=text)

    def _failure(self, number: int, step: Step, text: str, observation: str) -> str:
        where = f"{self._scenario.file}:{step.line}" if self._scenario.file else f"line {step.line}"
        message = f"step {number} ({step.verb}, {where}): {text}: {observation}"
        self._narrate.failed(message)
        return message

    def _save(self, step: Step, performed: Performed) -> None:
        for name, path in step.save.items():
            values = paths.find(path, performed.found) if performed.found is not None else []
            if not values:
                raise StepFailedError(f"cannot save {name}: {path} is unset")
            self.variables[name] = values[0] if isinstance(values[0], str) else str(values[0])

    # Expectations over the whole run

    def _watch_over(self, background: Background, stack: ExitStack, tasks: anyio.abc.TaskGroup) -> None:
        must_hold = background.mode is Mode.ALWAYS
        name = background.name or f"{background.mode.value} {background.condition.describe()}"
        if background.condition.is_about_objects:
            latch = stack.enter_context(Latch(self._world, background.condition, holds=not must_hold))
            latch.look(self._world.revision)
            self._latches.append((name, latch))
        else:
            tasks.start_soon(self._poll, name, background.condition, must_hold)

    async def _poll(self, name: str, condition: Condition, must_hold: bool) -> None:
        while True:
            observed = await self.stage.waiting.now(condition, holds=must_hold)
            if observed.holds is not must_hold:
                self._break(name, observed)
            await self._clock.sleep(PROBE_SECONDS)

    def _break(self, name: str, observed: Observed) -> None:
        if all(each.invariant != name for each in self._broken):
            self._broken.append(Violation(invariant=name, message=f"observed: {observed.text}"))

    async def _judge_background(self) -> None:
        """Look at the results of the expectations over the whole run, and at the invariants."""
        for name, latch in self._latches:
            observed = await self.stage.waiting.first_result(latch)
            if observed is not None:
                self._break(name, observed)
        violation = self._cluster.first_violation(self._scenario.except_invariants)
        if violation is not None and violation not in self._broken:
            self._broken.append(violation)

    async def _check_background(self) -> None:
        """Raise StepFailedError if an expectation over the whole run or an invariant does not hold."""
        await self._judge_background()
        first = next(filterfalse(self._is_accepted, self._broken), None)
        if first is not None:
            raise StepFailedError(f"during the run: {first.invariant}: {first.message}")


def _distinct(*objects: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(objects)))[:OBJECTS_MAX]


def _origin(numbered: tuple[int, Step]) -> int:
    """Return a key that is equal for copies of a step; steps that a caller added are no copies."""
    number, step = numbered
    return -number if step.origin is None else step.origin
