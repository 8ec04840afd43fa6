"""A process's runtime: all that it has of its own comes from one context variable."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import Context, copy_context

import pytest

from nominee.machinery.api.errors import FailpointError
from nominee.machinery.client.calls import transport
from nominee.machinery.runtime import failpoints, host, task_faults
from nominee.machinery.runtime.faults.call_faults import FAULTS, Call
from nominee.machinery.runtime.runtime import RUNTIME, Runtime
from nominee.simulation import per_process
from nominee.simulation.event_loop.loop import SimulatedLoop
from nominee.simulation.owner import Owner
from tests.simulation.contexts import runtime_of

STEP = failpoints.declare("tests.runtime.step", "a step of a test")


def _runtime(context: Context) -> Runtime:
    runtime = context[RUNTIME]
    assert runtime is not None
    return runtime


def _pass_step() -> None:
    with pytest.raises(StopIteration):
        STEP.hit().send(None)


def test_one_variable_gives_a_process_its_own_parts() -> None:
    runtime = runtime_of(SimulatedLoop(), Owner("scheduler", 1))  # type: ignore[abstract]  # no sockets
    context = Context()
    context.run(RUNTIME.set, runtime)
    assert len(context) == 1
    assert context.run(host.current) is runtime.host
    assert context.run(transport.current) is runtime.transport
    assert context.run(task_faults.current) is runtime.faults


def test_a_process_without_a_runtime_has_the_interpreters() -> None:
    assert Context().run(host.current) is copy_context().run(host.current)
    assert Context().run(task_faults.current) is FAULTS


@pytest.fixture
def contexts() -> Iterator[tuple[Context, Context]]:
    """Return the contexts of two processes while a simulation runs."""
    loop = SimulatedLoop()  # type: ignore[abstract]  # no sockets, threads, signals
    made = Context(), Context()
    for pid, context in enumerate(made):
        context.run(RUNTIME.set, runtime_of(loop, Owner(f"kubelet-{pid}", pid)))
    with per_process.install():
        yield made


def test_each_process_has_its_own_point(contexts: tuple[Context, Context]) -> None:
    one, other = contexts
    _runtime(one).failpoints.arm(STEP.name, "error")
    with pytest.raises(FailpointError):
        one.run(STEP.hit().send, None)
    other.run(_pass_step)
    hits = [_runtime(context).failpoints.point(STEP.name).hits for context in contexts]
    assert hits == [1, 1]
    assert failpoints.REGISTRY.point(STEP.name).hits == 0


def test_a_point_that_is_armed_from_the_start_says_so_before_it_is_passed(
    contexts: tuple[Context, Context],
) -> None:
    points = [_runtime(context).failpoints for context in contexts]
    points[0].arm_early({STEP.name: "pause"})
    actions = [{state.name: state.action for state in each.states()}[STEP.name] for each in points]
    assert actions == ["pause", ""]
    points[0].arm(STEP.name, "off")
    contexts[0].run(_pass_step)


def test_each_process_has_its_own_streams(contexts: tuple[Context, Context]) -> None:
    one, _ = contexts
    ended: list[str] = []
    watch = Call("apiserver", "Watch")
    first, second = (context.run(task_faults.current) for context in contexts)
    with (
        first.stream(watch, lambda: ended.append("one")),
        second.stream(watch, lambda: ended.append("other")),
    ):
        _runtime(one).faults.put("cut", "apiserver")
    assert ended == ["one"]
