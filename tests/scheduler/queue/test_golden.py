"""The queue does what the real one did, step by step (tests/golden/queue.jsonl, README-queue.md)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.scheduler.queue.own_plugins import own_registrations
from tests.scheduler.queue.replay import World, recorded_registrations, sequences

GOLDEN = Path(os.environ.get("NOMINEE_GOLDEN", "tests/golden"))
SEQUENCES = list(sequences(GOLDEN / "queue.jsonl"))


@pytest.mark.parametrize("sequence", SEQUENCES, ids=[sequence["name"] for sequence in SEQUENCES])
def test_sequence(sequence: dict[str, Any]) -> None:
    world = World(recorded_registrations(GOLDEN / "hints.jsonl", own_registrations()))
    for number, step in enumerate(sequence["steps"]):
        popped = world.do(step)
        state, expected = world.state(), step["expect"]
        # Maps that are empty are left out of the recording.
        wanted = {word: expected.get(word, type(value)()) for word, value in state.items()}
        assert state == wanted, f"step {number}: {step['op']} at {step['t']}"
        if step["op"] == "pop":
            assert (popped.pod_info.name if popped else None) == expected.get("popped"), f"step {number}"
