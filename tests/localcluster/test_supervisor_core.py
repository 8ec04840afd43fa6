"""The supervisor's decisions, as tables: no process is started here."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nominee.localcluster.supervisor.model.core import Action, Policy, Supervision, UnknownProcessError
from nominee.localcluster.supervisor.model.states import (
    RUNNING,
    TRANSITIONS,
    ChildState,
    Effect,
    Trigger,
    step,
)
from nominee.machinery.runtime.state_table import InvalidTransitionError

POLICY = Policy(backoff_initial=1.0, backoff_max=8.0, stable_after=10.0, stop_grace=5.0)


def cluster(policy: Policy = POLICY) -> Supervision:
    return Supervision([("etcd", 3), ("apiserver", 2), ("scheduler", 1), ("kubelet-0", 1)], policy)


def ready(policy: Policy = POLICY) -> Supervision:
    supervision = cluster(policy)
    supervision.start_all(0.0)
    for name in supervision.processes:
        supervision.became_ready(name, 0.0)
    return supervision


def state(supervision: Supervision, name: str) -> ChildState:
    return supervision.processes[name].state


def test_all_start_at_once_in_order() -> None:
    supervision = cluster()
    assert supervision.start_all(0.0) == [
        Action(name, Effect.SPAWN) for name in ("etcd", "apiserver", "scheduler", "kubelet-0")
    ]
    assert not supervision.all_ready
    for name in supervision.processes:
        supervision.became_ready(name, 1.0)
    assert supervision.all_ready


def test_restart_delays_double_up_to_the_limit() -> None:
    supervision = ready()
    now, delays = 0.0, []
    for _ in range(6):
        assert supervision.exited("scheduler", -9, "SIGKILL", now) == []
        deadline = supervision.next_deadline
        assert deadline is not None
        delays.append(deadline - now)
        assert supervision.tick(deadline - 0.001) == []
        assert supervision.tick(deadline) == [Action("scheduler", Effect.SPAWN)]
        now = deadline
        supervision.became_ready("scheduler", now)
    assert delays == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert supervision.processes["scheduler"].restarts == 6


@pytest.mark.parametrize(("ready_for", "delay"), [(9.9, 2.0), (10.0, 1.0)])
def test_a_process_that_was_ready_long_enough_starts_again_at_the_first_delay(
    ready_for: float, delay: float
) -> None:
    supervision = ready()
    supervision.exited("scheduler", -9, "SIGKILL", 0.0)
    supervision.tick(1.0)
    supervision.became_ready("scheduler", 1.0)
    supervision.exited("scheduler", -9, "SIGKILL", 1.0 + ready_for)
    assert supervision.next_deadline == pytest.approx(1.0 + ready_for + delay)


def test_restart_never_leaves_it_down_until_asked() -> None:
    supervision = ready(Policy(restart=False))
    supervision.exited("scheduler", -9, "SIGKILL", 1.0)
    assert state(supervision, "scheduler") is ChildState.CRASHED
    assert supervision.next_deadline is None
    assert supervision.ask("scheduler", Trigger.START, 2.0) == [Action("scheduler", Effect.SPAWN)]


def test_refused_options_are_not_tried_again() -> None:
    supervision = cluster()
    supervision.start_all(0.0)
    supervision.exited("scheduler", 2, "exit code 2", 0.5)
    assert [p.name for p in supervision.hopeless()] == ["scheduler"]
    supervision.exited("apiserver", 1, "exit code 1", 0.5)
    assert state(supervision, "apiserver") is ChildState.BACKOFF


def test_options_refused_at_a_restart_are_not_tried_again() -> None:
    supervision = cluster()
    supervision.start_all(0.0)
    supervision.became_ready("scheduler", 1.0)
    supervision.ask("scheduler", Trigger.RESTART, 2.0)
    supervision.exited("scheduler", 0, "exit code 0", 3.0)
    assert state(supervision, "scheduler") is ChildState.STARTING
    supervision.exited("scheduler", 2, "exit code 2", 4.0)
    assert state(supervision, "scheduler") is ChildState.CRASHED


def test_exit_code_2_of_a_process_that_was_ready_is_a_crash() -> None:
    """As etcd's after a panic."""
    supervision = cluster()
    supervision.start_all(0.0)
    supervision.became_ready("etcd", 1.0)
    supervision.exited("etcd", 2, "exit code 2", 2.0)
    assert state(supervision, "etcd") is ChildState.BACKOFF


def test_who_never_comes_up_is_given_up() -> None:
    supervision = cluster()
    supervision.start_all(0.0)
    now = 0.0
    for _ in range(POLICY.start_failures_max):
        assert supervision.hopeless() == []
        supervision.exited("apiserver", 1, "exit code 1", now)
        now += 100.0
        supervision.tick(now)
    assert [p.name for p in supervision.hopeless()] == ["apiserver"]


def test_stop_holds_and_start_brings_back() -> None:
    supervision = ready()
    assert supervision.ask("scheduler", Trigger.STOP, 1.0) == [Action("scheduler", Effect.TERM)]
    assert supervision.exited("scheduler", 0, "exit code 0", 1.5) == []
    assert state(supervision, "scheduler") is ChildState.DOWN
    assert supervision.all_ready
    assert supervision.ask("scheduler", Trigger.START, 2.0) == [Action("scheduler", Effect.SPAWN)]


def test_a_stop_that_is_ignored_becomes_a_kill() -> None:
    supervision = ready()
    supervision.ask("scheduler", Trigger.STOP, 1.0)
    assert supervision.tick(5.9) == []
    assert supervision.tick(6.0) == [Action("scheduler", Effect.KILL)]
    assert supervision.tick(20.0) == []


@pytest.mark.parametrize(
    ("trigger", "effect"), [(Trigger.RESTART, Effect.TERM), (Trigger.RESTART_KILL, Effect.KILL)]
)
def test_restart_comes_back_at_once(trigger: Trigger, effect: Effect) -> None:
    supervision = ready()
    assert supervision.ask("scheduler", trigger, 1.0) == [Action("scheduler", effect)]
    assert supervision.exited("scheduler", -9, "SIGKILL", 1.1) == [Action("scheduler", Effect.SPAWN)]
    assert supervision.processes["scheduler"].restarts == 1
    assert supervision.processes["scheduler"].failures == 0


def test_a_paused_process_is_continued_to_take_its_sigterm() -> None:
    supervision = ready()
    assert supervision.ask("kubelet-0", Trigger.PAUSE, 1.0) == [Action("kubelet-0", Effect.STOP)]
    assert supervision.ask("kubelet-0", Trigger.STOP, 2.0) == [
        Action("kubelet-0", Effect.TERM),
        Action("kubelet-0", Effect.CONT),
    ]


def test_resume_waits_for_readiness_again() -> None:
    supervision = ready()
    supervision.ask("kubelet-0", Trigger.PAUSE, 1.0)
    assert supervision.became_ready("kubelet-0", 1.5) == []
    assert state(supervision, "kubelet-0") is ChildState.PAUSED
    assert supervision.ask("kubelet-0", Trigger.RESUME, 2.0) == [Action("kubelet-0", Effect.CONT)]
    assert state(supervision, "kubelet-0") is ChildState.STARTING
    supervision.became_ready("kubelet-0", 2.1)
    assert state(supervision, "kubelet-0") is ChildState.READY


def test_an_impossible_command_is_refused_with_the_transition_log() -> None:
    supervision = ready()
    supervision.ask("scheduler", Trigger.STOP, 1.0)
    supervision.exited("scheduler", 0, "exit code 0", 1.1)
    with pytest.raises(
        InvalidTransitionError, match=r"scheduler: cannot pause what is down.*stopping -> down"
    ):
        supervision.ask("scheduler", Trigger.PAUSE, 2.0)
    with pytest.raises(UnknownProcessError, match="this cluster has no 'cloud'; it has etcd, apiserver"):
        supervision.ask("cloud", Trigger.STOP, 2.0)


def test_close_stops_stage_by_stage_and_etcd_last() -> None:
    supervision = ready()
    supervision.ask("kubelet-0", Trigger.PAUSE, 0.5)
    order = [supervision.close(1.0)]
    assert order[0] == [
        Action("scheduler", Effect.TERM),
        Action("kubelet-0", Effect.TERM),
        Action("kubelet-0", Effect.CONT),
    ]
    assert supervision.exited("scheduler", 0, "", 1.1) == []
    assert supervision.exited("kubelet-0", 0, "", 1.2) == [Action("apiserver", Effect.TERM)]
    assert supervision.exited("apiserver", -11, "", 1.3) == [Action("etcd", Effect.TERM)]
    assert not supervision.closed
    assert supervision.exited("etcd", 0, "", 1.4) == []
    assert supervision.closed
    with pytest.raises(InvalidTransitionError, match="going down"):
        supervision.ask("etcd", Trigger.START, 2.0)


def test_close_does_not_bring_back_what_crashed_or_waits() -> None:
    supervision = ready()
    supervision.exited("apiserver", -9, "", 1.0)
    supervision.ask("scheduler", Trigger.RESTART, 1.0)
    supervision.close(1.1)
    assert supervision.exited("scheduler", 0, "", 1.2) == []
    assert supervision.exited("kubelet-0", 0, "", 1.2) == [Action("etcd", Effect.TERM)]
    assert supervision.exited("etcd", 0, "", 1.3) == []
    assert supervision.closed
    assert supervision.tick(100.0) == []


def test_closing_at_once_kills_all_stages() -> None:
    supervision = ready()
    supervision.close(1.0)
    assert supervision.close(1.1, at_once=True) == [
        Action(name, Effect.KILL) for name in supervision.processes
    ]


def test_every_running_state_can_die_and_be_stopped() -> None:
    for state in RUNNING:
        for trigger in (Trigger.DIED, Trigger.DIED_FOR_GOOD, Trigger.STOP, Trigger.KILL):
            assert step(state, trigger)
    for state, row in TRANSITIONS.items():
        for trigger, found in row.items():
            spawns = Effect.SPAWN in found.effects
            has_process = state in RUNNING and trigger not in (Trigger.DIED, Trigger.DIED_FOR_GOOD)
            assert (found.to in RUNNING) == (has_process or spawns), (state, trigger)


class Machine(RuleBasedStateMachine):
    """A model that knows which processes exist: one per name, no signal to none, no start when closing."""

    def __init__(self) -> None:
        super().__init__()
        self.supervision = cluster()
        self.now = 0.0
        self.alive: set[str] = set()
        self.perform(self.supervision.start_all(self.now))

    def perform(self, actions: list[Action]) -> None:
        for action in actions:
            if action.effect is Effect.SPAWN:
                assert action.name not in self.alive
                assert not self.supervision.closing
                self.alive.add(action.name)
            else:
                assert action.name in self.alive

    @rule(
        name=st.sampled_from(["etcd", "apiserver", "scheduler", "kubelet-0"]),
        trigger=st.sampled_from(Trigger),
    )
    def ask(self, name: str, trigger: Trigger) -> None:
        if trigger in (Trigger.BECAME_READY, Trigger.DIED, Trigger.DIED_FOR_GOOD, Trigger.DEADLINE):
            return
        with contextlib.suppress(InvalidTransitionError):
            self.perform(self.supervision.ask(name, trigger, self.now))

    @precondition(lambda self: self.alive)
    @rule(data=st.data(), code=st.sampled_from([0, 1, 2, -9, -15]))
    def exit(self, data: st.DataObject, code: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.alive)))
        self.alive.discard(name)
        self.perform(self.supervision.exited(name, code, str(code), self.now))

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def become_ready(self, data: st.DataObject) -> None:
        self.perform(self.supervision.became_ready(data.draw(st.sampled_from(sorted(self.alive))), self.now))

    @rule(seconds=st.floats(0.01, 20))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.perform(self.supervision.tick(self.now))

    @rule(at_once=st.booleans())
    def close(self, at_once: bool) -> None:
        self.perform(self.supervision.close(self.now, at_once=at_once))

    @invariant()
    def states_agree(self) -> None:
        running = {p.name for p in self.supervision.processes.values() if p.state in RUNNING}
        assert running == self.alive
        if self.supervision.closing and not self.alive:
            assert self.supervision.closed


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
