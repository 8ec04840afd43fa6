"""A violation between the history and a running process counts if it lasts."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import anyio

from nominee.lab.history.invariants.check import Result
from nominee.lab.history.invariants.checking.checker import Violation
from nominee.lab.history.verification.verification import ATTEMPTS, settled
from nominee.machinery.runtime.clock import FakeClock

CHECKPOINTS, BINDING = "checkpoints-match-status", "one-node-per-pod"


def _result(name: str, *, violated: bool) -> Result:
    found = Violation(invariant=name, message="m", revisions=(1,), objects=("Pod default/p",))
    violations = (found,) if violated else ()
    return Result(invariant=name, checked=1, unchecked="", exceptions={}, counts={}, violations=violations)


async def _settled(first: Sequence[Result], later: Sequence[bool]) -> tuple[list[int], list[set[str]]]:
    """Return the violations of each result, and what was checked again; `later` is whether it is violated."""
    asked: list[set[str]] = []
    clock = FakeClock()
    found: list[int] = []

    async def again(names: Collection[str]) -> Sequence[Result]:
        asked.append(set(names))
        return [_result(name, violated=later[len(asked) - 1]) for name in names]

    async def run() -> None:
        found.extend(len(result.violations) for result in await settled(first, again, clock))
        scope.cancel()

    async with anyio.create_task_group() as group:
        scope = group.cancel_scope
        group.start_soon(run)
        while not found:
            await clock.advance(0.5)
    return found, asked


async def test_a_violation_that_does_not_last_is_dropped() -> None:
    first = [_result(CHECKPOINTS, violated=True), _result(BINDING, violated=True)]
    assert await _settled(first, [True, False]) == ([0, 1], [{CHECKPOINTS}, {CHECKPOINTS}])


async def test_a_violation_that_lasts_stays() -> None:
    found, asked = await _settled([_result(CHECKPOINTS, violated=True)], [True] * ATTEMPTS)
    assert (found, len(asked)) == ([1], ATTEMPTS - 1)


async def test_a_violation_of_the_history_alone_is_not_checked_again() -> None:
    first = [_result(CHECKPOINTS, violated=False), _result(BINDING, violated=True)]
    assert await _settled(first, []) == ([0, 1], [])
