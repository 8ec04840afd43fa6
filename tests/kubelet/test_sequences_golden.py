"""The kubelet's core against kubelet.jsonl: sequences recorded on the real allocation manager (1.36.2)."""

from __future__ import annotations

import pytest

from tests.kubelet.golden_player import Player
from tests.support.recordings import Case, read

CASES = read("kubelet.jsonl")
INPUTS = frozenset(
    ["op", "pods", "pod", "containers", "podResources", "names", "phase", "error", "node", "note"]
)


def test_there_are_sequences() -> None:
    assert len(CASES) > 50


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_sequence(case: Case) -> None:
    player = Player(case)
    for number, step in enumerate(case["steps"]):
        got = player.step(step)
        wanted = {key: value for key, value in step.items() if key not in INPUTS}
        assert got == wanted, f"step {number}: {step['op']}"
