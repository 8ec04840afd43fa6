"""A callback that never ends: it ends the simulation, also in the process of a fork."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable

import anyio
import pytest

from nominee.simulation.event_loop import watchdog
from nominee.simulation.event_loop.loop import SimulationError
from nominee.simulation.simulation import Simulation

SECONDS = 0.05
_FORK = f"""
import os, signal
from nominee.simulation.event_loop import watchdog
from nominee.simulation.simulation import Simulation
watchdog.CALLBACK_SECONDS_MAX = {SECONDS}
simulation = Simulation(1)

async def main():
    child = simulation.loop.fork()
    if child == 0:
        while True:
            pass
    print("status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

simulation.run(main)
"""


def spin() -> None:
    while True:
        try:
            sum(range(100))
        except Exception:  # noqa: BLE001  # as a component that goes on after any error
            continue


def spin_in_the_kernel() -> None:
    with open("/dev/zero", "rb", buffering=0) as zeros:
        while True:
            zeros.read(1 << 20)


@pytest.mark.parametrize("endless", [spin, spin_in_the_kernel])
def test_a_callback_that_does_not_end_ends_the_simulation(
    endless: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "CALLBACK_SECONDS_MAX", SECONDS)
    before = signal.getsignal(signal.SIGPROF)

    async def main() -> None:
        await anyio.sleep(1.5)
        endless()

    with pytest.raises(SimulationError, match=r"^a callback of user at 1\.500000 s does not end$"):
        Simulation(1).run(main)
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGPROF) is before


def test_a_task_that_does_not_end_when_the_simulation_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "CALLBACK_SECONDS_MAX", SECONDS)
    simulation = Simulation(1)

    async def late() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            spin()

    async def main() -> str:
        simulation.loop.create_task(late())
        await anyio.sleep(1.0)
        return "over"

    assert simulation.run(main) == "over"


def test_a_fork_has_the_limit_too() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _FORK], capture_output=True, text=True, timeout=60, check=False
    )
    assert "a callback of user at 0.000000 s does not end" in ran.stderr
    assert ran.stdout == "status 1\n", ran.stderr
