"""Writes of one pod: in order, merged while they wait, and what they decide counts at once."""

from __future__ import annotations

from functools import partial

import anyio
import anyio.lowlevel
import pytest

from nominee.machinery.api import errors, kinds
from nominee.machinery.runtime.clock import SystemClock
from nominee.scheduler.dispatch.api_calls import nomination
from nominee.scheduler.dispatch.call_queue import UNDER_WAY_MAX
from nominee.scheduler.shell.calls.api_dispatcher import ATTEMPTS_MAX
from nominee.scheduler.shell.loop.scheduler import TURNS_MAX, turns_after
from tests.scheduler.builders import node, pod
from tests.scheduler.shell.conftest import running
from tests.support.fake_api import FakeApi


class Hasty(SystemClock):
    """Does not sleep."""

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()


class Late(Hasty):
    """A minute passes between any two looks."""

    looks = 0

    def now(self) -> float:
        self.looks += 1
        return 60.0 * self.looks


async def test_writes_that_wait_are_merged_into_the_last() -> None:
    """Four failures, the write of the first one held: the second and the third are never written."""
    api = FakeApi()
    api.put(node("n1", cpu="1"))
    api.put(pod("p", cpu="3").pod)
    held = api.hold["patch/status"] = anyio.Event()
    key = pod("p").key
    async with running(api) as parts:

        def last_message_is_of(nodes: int) -> bool:
            records = parts.deps.attempts.of(key)
            return bool(records) and records[-1].message.startswith(f"0/{nodes} ")

        def has_nodes(nodes: int) -> bool:
            return parts.cache.node_count == nodes

        await api.until(lambda: last_message_is_of(1))
        for nodes in (2, 3, 4):
            api.put(node(f"n{nodes}", cpu="1"))  # another message each time
            seen, written = partial(has_nodes, nodes), partial(last_message_is_of, nodes)
            await api.until(seen)
            parts.queue.activate([api.pod("p")], parts.now())
            await api.until(written)
        held.set()
        await parts.deps.dispatcher.wait("uid-p")
    messages = [body["status"]["conditions"][0]["message"] for _, body in api.writes("p")]
    assert [message[:4] for message in messages] == ["0/1 ", "0/4 "]


@pytest.mark.parametrize(("seconds", "turns"), [(0.0, 1), (0.0004, 1), (0.02, 41), (5.0, TURNS_MAX)])
def test_the_longer_an_attempt_the_more_turns_for_everything_else(seconds: float, turns: int) -> None:
    assert turns_after(seconds) == turns


async def test_while_the_server_is_away_the_last_failure_of_each_pod_waits() -> None:
    api = FakeApi()
    api.put(node("n1", cpu="1"))
    away = errors.service_unavailable("away")
    pods = {f"p{number}": pod(f"p{number}", cpu="3").pod for number in range(3 * UNDER_WAY_MAX)}
    api.rejections["patch/status"] = [away] * (ATTEMPTS_MAX * UNDER_WAY_MAX)
    held = api.hold["patch/status"] = anyio.Event()
    async with running(api) as parts:
        calls = parts.deps.calls
        parts.deps.dispatcher._clock = Hasty()
        for made in pods.values():
            api.put(made)
        await api.until(lambda: calls.waiting == len(pods) - UNDER_WAY_MAX)
        api.put(node("n2", cpu="1"))
        await api.until(lambda: parts.cache.node_count == 2)
        parts.queue.activate(list(pods.values()), parts.now())
        # All have failed again: each pod has one place in the queue, also those being written.
        attempts = parts.deps.attempts
        keys = [pod(name).key for name in pods]
        await api.until(lambda: all(attempts.of(key)[-1].message.startswith("0/2 ") for key in keys))
        assert calls.waiting == len(pods)
        assert calls.under_way == UNDER_WAY_MAX
        held.set()
        await api.until(lambda: not len(calls))
        assert {api.pod(name).status.conditions[0].message[:4] for name in pods} == {"0/2 "}
        assert (calls.waiting, calls.under_way) == (0, 0)


async def test_the_attempts_at_a_write_have_one_time() -> None:
    """The first attempt may have been written, and its answer lost."""
    api = FakeApi()
    api.put(node("n1", cpu="1"))
    api.rejections["patch/status"] = [errors.service_unavailable("away")] * (ATTEMPTS_MAX - 1)
    async with running(api) as parts:
        parts.deps.dispatcher._clock = Late()
        api.put(pod("p", cpu="3").pod)
        await api.until(lambda: bool(api.pod("p").status.conditions))
    times = [body["status"]["conditions"][0]["lastTransitionTime"] for _, body in api.writes("p")]
    assert times == ["1970-01-01T00:01:00Z"] * ATTEMPTS_MAX


async def test_a_failure_is_written_when_the_server_is_back_without_another_attempt() -> None:
    api = FakeApi()
    api.put(node("n1", cpu="1"))
    api.rejections["patch/status"] = [errors.service_unavailable("away")] * (2 * ATTEMPTS_MAX)
    async with running(api) as parts:
        parts.deps.dispatcher._clock = Hasty()
        api.put(pod("p", cpu="3").pod)
        await api.until(lambda: bool(api.pod("p").status.conditions))
        [record] = parts.deps.attempts.of(pod("p").key)
        assert api.pod("p").status.conditions[0].message == record.message


async def test_a_cleared_nomination_is_written_after_the_failure_that_is_under_way() -> None:
    """The nominator drops it at once, and the pods of the same priority may use the node."""
    api = FakeApi()
    api.put(node("n1", cpu="1"))
    lower = pod("lower", cpu="3", nominated="n1").pod
    api.put(lower)
    held = api.hold["patch/status"] = anyio.Event()
    async with running(api) as parts:
        await api.until(lambda: parts.deps.calls.under_way == 1)
        parts.nominator.add(pod("lower", cpu="3", nominated="n1"))
        parts.deps.calls.decide(nomination(lower, "n1"))
        parts.deps.dispatcher.clear_nomination(lower)
        assert not parts.nominator.by_node
        held.set()
        await parts.deps.dispatcher.wait("uid-lower")
        first, *later = [body["status"] for _, body in api.writes("lower")]
        assert first["conditions"][0]["reason"] == "Unschedulable"
        assert all(status.get("nominatedNodeName") is None for status in later)
        assert not api.pod("lower").status.nominatedNodeName


async def test_a_deleted_pod_leaves_no_write_behind() -> None:
    api = FakeApi()
    api.put(node("n1", cpu="1"))
    api.hold["patch/status"] = anyio.Event()
    names = [f"p{number}" for number in range(UNDER_WAY_MAX + 2)]
    for name in names:
        api.put(pod(name, cpu="3").pod)
    async with running(api) as parts:
        calls = parts.deps.calls
        await api.until(lambda: calls.waiting == 2)
        for name in names:
            api.remove(kinds.POD, name)
        await api.until(lambda: calls.waiting == 0)


async def test_a_write_that_is_repeated_does_not_reach_a_pod_that_was_created_again() -> None:
    """The first attempt has no answer; by the second one a bound pod has the name, whose patch has no uid."""
    api = FakeApi()
    api.put(node("n1", cpu="1"))
    api.rejections["patch/status"] = [errors.timeout("no answer")]
    held = api.hold["patch/status"] = anyio.Event()
    api.put(pod("p", cpu="3").pod)
    async with running(api) as parts:
        calls = parts.deps.calls
        await api.until(lambda: calls.under_way == 1)
        api.remove(kinds.POD, "p")
        again = pod("p", cpu="3", on="n1").pod
        again.metadata.uid = "another"
        api.put(again)

        def is_seen() -> bool:
            seen = calls.cached(pod("p").key)
            return seen is not None and seen.metadata.uid == "another"

        await api.until(is_seen)
        held.set()
        await api.until(lambda: not len(calls))
        assert not api.pod("p").status.conditions
