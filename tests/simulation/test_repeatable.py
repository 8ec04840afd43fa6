"""One seed is one history: in one process, and in processes with different hash seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from nominee.simulation.simulation import Simulation
from tests.simulation.cluster import create_pods, start, wait_running
from tests.support.patience import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
PODS = 20


def run(seed: int) -> Simulation:
    """Run 20 pods on three nodes."""
    simulation = Simulation(seed)

    async def main() -> None:
        client = await start(simulation)
        async with client:
            await create_pods(client, PODS)
            await wait_running(client, PODS)

    simulation.run(main)
    return simulation


def test_pods_run() -> None:
    simulation = run(1)
    assert simulation.loop.problems == []
    assert simulation.store.revision > 3 * PODS


def test_the_same_seed_gives_the_same_history() -> None:
    assert run(1).store.digest() == run(1).store.digest()


def test_another_seed_gives_another_history() -> None:
    assert run(1).store.digest() != run(2).store.digest()


def test_the_history_does_not_depend_on_the_hash_seed() -> None:
    program = "; ".join(
        (
            f"from {__name__} import run",
            "from tests.simulation.test_scenarios import digest",
            "print(run(3).store.digest(), digest(4))",
        )
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    printed = {process.communicate(timeout=PATIENCE_SECONDS)[0] for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert len(printed) == 1
