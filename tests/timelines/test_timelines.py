"""Whole scenarios, recorded on the real control plane (1.36.2), end the same way here, in the same order."""

from __future__ import annotations

import pytest

from tests.support.cluster import Cluster
from tests.support.recordings import folder
from tests.timelines.player import describe, prepared
from tests.timelines.recording import Recording, load

RECORDINGS = load(folder() / "timelines.json")


def test_there_are_recordings() -> None:
    assert len(RECORDINGS) >= 12


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
async def test_the_same_changes_in_the_same_order(recording: Recording, cluster: Cluster) -> None:
    async with prepared(recording, cluster) as player:
        expected, seen = await player.play()
    assert seen == expected, f"expected\n{describe(expected)}\nsaw\n{describe(seen)}"
