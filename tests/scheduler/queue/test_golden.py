"""The queue does what the real one did, step by step (queue.jsonl)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.queue.own_plugins import own_registrations
from tests.scheduler.queue.replay import World
from tests.support.recordings import read

SEQUENCES = read("queue.jsonl")
OF_POP = frozenset({"popped", "poppedFrom"})


@pytest.mark.parametrize("sequence", SEQUENCES, ids=[sequence["name"] for sequence in SEQUENCES])
def test_sequence(sequence: dict[str, Any]) -> None:
    world = World([each for found in own_registrations().values() for each in found])
    for number, step in enumerate(sequence["steps"]):
        popped = world.do(step)
        state, expected = world.state(), step["expect"]
        # The recording leaves out empty maps.
        wanted = {word: expected.get(word, type(value)()) for word, value in state.items()}
        assert state == wanted, f"step {number}: {step['op']} at {step['t']}"
        assert set(expected) <= set(state) | OF_POP, f"step {number}: fields that are not compared"
        recorded = {word: expected[word] for word in OF_POP & set(expected)}
        assert popped == recorded, f"step {number}"


def test_all_plugins_are_ours() -> None:
    """No recorded plugin is replaced by one that always answers Queue."""
    (registry, *_) = read("hints.jsonl")
    assert set(own_registrations()) == set(registry["plugins"])
