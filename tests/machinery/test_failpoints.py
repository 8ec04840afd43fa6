"""Failpoints: the grammar, the chains, and what each action does."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys

import anyio
import pytest

from nominee.machinery.api.errors import StatusError
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.runtime.failpoints import (
    ActionError,
    FailpointError,
    Registry,
    Term,
    parse,
    parse_list,
)
from tests.support.patience import PATIENCE_SECONDS


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("off", (Term("off"),)),
        ("crash", (Term("crash"),)),
        ("2*error(503)->crash", (Term("error", "503", count=2), Term("crash"))),
        ('50%error("a -> \\"b\\"; c")', (Term("error", 'a -> "b"; c', quoted=True, percent=50.0),)),
        (" 1*sleep(250) -> pause ", (Term("sleep", "250", count=1), Term("pause"))),
        ("12.5%3*error", (Term("error", percent=12.5, count=3),)),
    ],
)
def test_parse(text: str, want: tuple[Term, ...]) -> None:
    assert parse(text) == want


@pytest.mark.parametrize(
    "text",
    ["", "panic", "sleep", "sleep(-1)", "sleep(1.5)", "sleep(9999999)", "error(200)", "error(x)", "crash(1)",
     "off->", "101%off", "off off", "error(\"x)"],
)  # fmt: skip
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ActionError):
        parse(text)


def test_a_list_may_have_semicolons_in_texts() -> None:
    assert parse_list('a.b=error("x;y");;c=2*off->crash; ') == {"a.b": 'error("x;y")', "c": "2*off->crash"}
    with pytest.raises(ActionError, match="NAME=ACTION"):
        parse_list("a.b")


async def test_counts_lead_to_the_next_term() -> None:
    registry = Registry()
    point = registry.declare("a.b")
    await point.hit()
    registry.arm("a.b", '1*off->2*error("x")->1*error(503)')
    await point.hit()
    for _ in range(2):
        with pytest.raises(FailpointError, match="x"):
            await point.hit(pod="ns/p")
    with pytest.raises(StatusError) as caught:
        await point.hit(pod="ns/p")
    assert (caught.value.code, caught.value.reason) == (503, "ServiceUnavailable")
    await point.hit()
    state = point.state()
    assert (state.hits, state.fired, state.last) == (6, 3, {"pod": "ns/p"})


async def test_probability_is_the_registrys_dice() -> None:
    registry = Registry(rng=random.Random(7))
    point = registry.declare("a.b")
    registry.arm("a.b", "25%error")
    failed = 0
    for _ in range(400):
        try:
            await point.hit()
        except FailpointError:
            failed += 1
    assert 70 < failed < 130


async def test_pause_holds_until_disarmed() -> None:
    registry = Registry()
    point = registry.declare("a.b")
    registry.arm("a.b", "pause")
    passed = anyio.Event()

    async def walk() -> None:
        await point.hit()
        passed.set()

    async with anyio.create_task_group() as group:
        group.start_soon(walk)
        await anyio.wait_all_tasks_blocked()
        assert registry.states()[0].waiting == 1
        assert not passed.is_set()
        registry.arm("a.b", "off")
        with anyio.fail_after(PATIENCE_SECONDS):
            await passed.wait()
    assert point.state().waiting == 0


async def test_sleep_uses_the_clock() -> None:
    clock = FakeClock()
    registry = Registry(clock=clock)
    point = registry.declare("a.b")
    registry.arm("a.b", "sleep(1500)")
    passed = anyio.Event()

    async def walk() -> None:
        await point.hit()
        passed.set()

    async with anyio.create_task_group() as group:
        group.start_soon(walk)
        await clock.wait_for_sleepers()
        await clock.advance(1.4)
        assert not passed.is_set()
        await clock.advance(0.2)
        assert passed.is_set()


def test_unknown_points_are_named_with_what_there_is() -> None:
    registry = Registry()
    registry.declare("scheduler.bind.before")
    with pytest.raises(ActionError, match=r"scheduler\.bind\.before"):
        registry.arm("scheduler.bind.befor", "crash")
    with pytest.raises(ValueError, match="twice"):
        registry.declare("scheduler.bind.before")


async def test_armed_before_it_is_declared() -> None:
    registry = Registry()
    registry.arm_early({"a.b": "error", "never": "crash"})
    point = registry.declare("a.b")
    with pytest.raises(FailpointError):
        await point.hit()
    assert registry.undeclared() == ("never",)


def test_crash_is_sigkill() -> None:
    script = (
        "import anyio; from nominee.machinery.runtime import failpoints as f\n"
        "p = f.declare('a.b', 'a step'); f.arm('a.b', '1*off->crash')\n"
        "async def main():\n    await p.hit(); print('once', flush=True); await p.hit(); print('twice')\n"
        "anyio.run(main)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        env=os.environ,
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"once\n")
