"""Writes of one pod: in order, merged while they wait, and what they decide counts at once."""

from __future__ import annotations

from functools import partial

import anyio
import pytest

from scheduler.shell.scheduler import TURNS_MAX, turns_after
from tests.scheduler.builders import node, pod
from tests.scheduler.shell.conftest import running
from tests.scheduler.shell.fake_api import FakeApi


async def test_writes_that_wait_are_merged_into_the_last() -> None:
    """Four failures, the write of the first one held: the second and the third are never written."""
    api = FakeApi()
    api.put(node("n1", cpu="1"))
    api.put(pod("p", cpu="3").pod)
    held = api.hold["patch/status"] = anyio.Event()
    key = pod("p").key
    async with running(api) as parts:

        def last_message_is_of(nodes: int) -> bool:
            records = parts.scheduler.attempts.of(key)
            return bool(records) and records[-1].message.startswith(f"0/{nodes} ")

        def has_nodes(nodes: int) -> bool:
            return parts.cache.node_count == nodes

        await api.until(lambda: last_message_is_of(1))
        for nodes in (2, 3, 4):
            api.put(node(f"n{nodes}", cpu="1"))  # another message each time
            seen, told = partial(has_nodes, nodes), partial(last_message_is_of, nodes)
            await api.until(seen)
            parts.queue.activate([api.pod("p")], parts.now())
            await api.until(told)
        held.set()
        await parts.scheduler.failures.writer.wait("uid-p")
    messages = [body["status"]["conditions"][0]["message"] for _, body in api.writes("p")]
    assert [message[:4] for message in messages] == ["0/1 ", "0/4 "]


@pytest.mark.parametrize(("seconds", "turns"), [(0.0, 1), (0.0004, 1), (0.02, 41), (5.0, TURNS_MAX)])
def test_the_longer_an_attempt_the_more_turns_for_everything_else(seconds: float, turns: int) -> None:
    assert turns_after(seconds) == turns
