"""Events: series, rate, a full queue, an API server that is away. Source: client-go 1.36, tools/events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest

from nominee.machinery.api import errors
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core, events
from nominee.machinery.client.api_client import Client
from nominee.machinery.events.recorder import QUEUE_MAX, BufferedRecorder
from nominee.machinery.events.series import SERIES_MAX, EventSeriesCache
from nominee.machinery.events.series_recorder import NOTE_BYTES_MAX, SeriesRecorder
from nominee.machinery.runtime.clock import FakeClock, from_time, to_micro_time
from nominee.machinery.runtime.queues.token_bucket import TokenBucket
from tests.support.patience import PATIENCE_SECONDS

LIMIT_SECONDS = PATIENCE_SECONDS


class EventServer:
    """A client that keeps events, and raises the errors it is given."""

    def __init__(self) -> None:
        self.events: dict[str, events.Event] = {}
        self.requests: list[str] = []
        self.failures: list[StatusError] = []

    async def create(self, event: events.Event) -> events.Event:
        self._begin("create")
        kept = self.events[event.metadata.name] = events.Event()
        kept.CopyFrom(event)
        return kept

    async def patch(self, kind: object, name: str, namespace: str, patch: Any, **_: object) -> None:
        self._begin("patch")
        if name not in self.events:
            raise errors.StatusError(404, "NotFound", "not found")
        self.events[name].series.count = patch["series"]["count"]

    def _begin(self, verb: str) -> None:
        self.requests.append(verb)
        if self.failures:
            raise self.failures.pop(0)


def pod(name: str = "p", revision: str = "7") -> core.Pod:
    made = core.Pod()
    made.metadata.namespace, made.metadata.name = "ns", name
    made.metadata.uid, made.metadata.resourceVersion = f"uid-{name}", revision
    return made


@asynccontextmanager
async def recording(**kwargs: Any) -> AsyncIterator[tuple[BufferedRecorder, EventServer, FakeClock]]:
    server, clock = EventServer(), FakeClock()
    recorder = SeriesRecorder(
        cast("Client", server), "default-scheduler", clock=clock, instance="i", **kwargs
    )
    with anyio.fail_after(LIMIT_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(recorder.run)
            await clock.settle()
            yield recorder, server, clock
            group.cancel_scope.cancel()


def tell(recorder: BufferedRecorder, about: core.Pod, reason: str = "Scheduled", note: str = "n") -> None:
    recorder.event(about, "Normal", reason, action="Binding", note=note)


async def drain(clock: FakeClock) -> None:
    """Let the sender pass its rate limit's waits of no time at all."""
    for _ in range(10):
        await clock.settle()


async def test_two_components_record_events_of_one_object_at_the_same_time() -> None:
    """Else the second event is lost, and its next occurrence changes the first one."""
    async with recording() as (recorder, server, clock):
        other = SeriesRecorder(cast("Client", server), "kubelet", clock=clock)
        async with anyio.create_task_group() as group:
            group.start_soon(other.run)
            tell(recorder, pod(), "Scheduled")
            tell(other, pod(), "Created")
            await drain(clock)
            group.cancel_scope.cancel()
        assert sorted(event.reason for event in server.events.values()) == ["Created", "Scheduled"]


async def test_two_recorders_of_a_component_record_events_of_one_object_at_the_same_time() -> None:
    async with recording() as (one, server, clock), recording(queue="containers") as (other, more, _):
        tell(one, pod())
        tell(other, pod())
        await drain(clock)
    assert len({*server.events, *more.events}) == 2


async def test_an_event_has_the_fields_of_a_real_one() -> None:
    async with recording() as (recorder, server, clock):
        tell(recorder, pod(), note="Successfully assigned ns/p to n1")
        await drain(clock)
        (event,) = server.events.values()
        micros = int(clock.now() * 1_000_000)
        name, _, nanos = event.metadata.name.partition(".")
        assert (name, int(nanos, 16) // 1000) == ("p", micros)
        assert (event.metadata.namespace, event.type, event.reason, event.action) == (
            "ns",
            "Normal",
            "Scheduled",
            "Binding",
        )
        assert (event.reportingController, event.reportingInstance) == ("default-scheduler", "i")
        assert event.note == "Successfully assigned ns/p to n1"
        assert from_time(event.eventTime) == pytest.approx(clock.now(), abs=1e-5)
        about = event.regarding
        assert (about.kind, about.apiVersion, about.namespace, about.name) == ("Pod", "v1", "ns", "p")
        assert (about.uid, about.resourceVersion) == ("uid-p", "7")
        assert not event.HasField("series")
        assert not event.HasField("related")


async def test_the_second_time_is_a_series_of_two_and_the_rest_are_counted() -> None:
    async with recording() as (recorder, server, clock):
        for _ in range(5):
            tell(recorder, pod())
            await drain(clock)
        assert server.requests == ["create", "patch"]
        (event,) = server.events.values()
        assert event.series.count == 2
        # The series has ended: its last count is sent.
        await clock.advance(12 * 60)
        await drain(clock)
        assert server.requests == ["create", "patch", "patch"]
        assert event.series.count == 5
        tell(recorder, pod())
        await drain(clock)
        assert len(server.events) == 2


async def test_another_version_of_the_object_is_another_event() -> None:
    async with recording() as (recorder, server, clock):
        tell(recorder, pod(revision="7"))
        tell(recorder, pod(revision="8"))
        tell(recorder, pod(revision="8"), reason="Other")
        await drain(clock)
        assert server.requests == ["create"] * 3
        assert len(server.events) == 3, "names differ although the time does not"


async def test_a_series_whose_event_is_gone_is_created_again() -> None:
    async with recording() as (recorder, server, clock):
        tell(recorder, pod())
        await drain(clock)
        server.events.clear()
        tell(recorder, pod())
        await drain(clock)
        assert server.requests == ["create", "patch", "create"]
        (event,) = server.events.values()
        assert event.series.count == 2


async def test_it_waits_for_an_api_server_that_is_away() -> None:
    async with recording() as (recorder, server, clock):
        server.failures = [errors.service_unavailable("no")] * 3
        tell(recorder, pod())
        await drain(clock)
        assert not server.events
        await clock.advance(10)
        assert len(server.events) == 1
        assert recorder.failed == 0


async def test_what_the_api_server_refuses_is_counted_and_not_repeated() -> None:
    async with recording() as (recorder, server, clock):
        server.failures = [errors.forbidden(None, "", "namespace is being terminated")]
        tell(recorder, pod())
        await drain(clock)
        assert (server.requests, recorder.failed) == (["create"], 1)
        tell(recorder, pod())
        await drain(clock)
        assert server.requests == ["create", "create"], "a first time again"


async def test_the_rate_is_limited_and_a_full_queue_drops() -> None:
    async with recording(per_second=10, burst=5) as (recorder, server, clock):
        for index in range(QUEUE_MAX + 20):
            tell(recorder, pod(f"p{index}"))
        assert recorder.dropped == 20
        await drain(clock)
        assert len(server.events) == 5
        await clock.advance(2.0)
        assert 20 <= len(server.events) <= 26


async def test_flush_sends_what_is_queued() -> None:
    server, clock = EventServer(), FakeClock()
    recorder = SeriesRecorder(cast("Client", server), "c", clock=clock, per_second=1, burst=1)
    for index in range(3):
        tell(recorder, pod(f"p{index}"))
    await recorder.flush()
    assert len(server.events) == 3


async def test_an_empty_action_is_the_reason_and_a_long_note_is_cut() -> None:
    async with recording() as (recorder, server, clock):
        recorder.event(pod(), "Normal", "Created", action="", note="ä" * 2000)
        await drain(clock)
        (event,) = server.events.values()
        assert event.action == "Created"
        assert len(event.note.encode()) <= NOTE_BYTES_MAX
        assert event.note.endswith("ä...")


def test_memory_is_bounded() -> None:
    cache = EventSeriesCache()
    for index in range(SERIES_MAX + 10):
        event = events.Event(reason=str(index))
        event.eventTime.CopyFrom(to_micro_time(1000.0 + index * 0.001))
        assert cache.record(event) is event
    assert len(cache) == SERIES_MAX


def test_finish_forgets_only_what_is_old() -> None:
    cache = EventSeriesCache()
    for reason, at in (("old", 0.0), ("new", 300.0)):
        event = events.Event(reason=reason)
        event.eventTime.CopyFrom(to_micro_time(1000.0 + at))
        cache.record(event)
    assert cache.finish(1000.0 + 400.0) == []
    assert len(cache) == 1


def test_a_bucket_lets_a_burst_through_and_then_its_rate() -> None:
    bucket = TokenBucket(10.0, 3, 0.0)
    assert [bucket.take(0.0) for _ in range(5)] == pytest.approx([0.0, 0.0, 0.0, 0.1, 0.2])
    assert not bucket.try_take(0.2)
    assert bucket.try_take(0.31)
    assert not bucket.try_take(0.31)
    for _ in range(3):
        assert bucket.try_take(100.0)
    assert not bucket.try_take(100.0)
