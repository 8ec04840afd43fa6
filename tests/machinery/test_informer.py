"""Reflector and informer against a scripted API server: the requests, and the events of handlers."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import key_of
from nominee.machinery.api.pb import core
from nominee.machinery.client.api_client import Client, ListResult, WatchEvent
from nominee.machinery.client.watches.informer import Informer
from nominee.machinery.runtime.clock import FakeClock
from tests.support.patience import PATIENCE_SECONDS

LIMIT_SECONDS = PATIENCE_SECONDS


def pod(name: str, revision: int, *, uid: str = "", node: str = "") -> core.Pod:
    made = core.Pod()
    made.metadata.namespace, made.metadata.name = "ns", name
    made.metadata.uid = uid or f"uid-{name}"
    made.metadata.resourceVersion = str(revision)
    made.spec.nodeName = node
    return made


Step = Sequence[WatchEvent[core.Pod]] | StatusError | None
"""One message of a watch, its failure, or None for its end."""


class ScriptedServer:
    """Answers lists and watches in the order of a script, notes what was asked, and then stays silent."""

    def __init__(self, lists: list[ListResult[core.Pod] | StatusError], watches: list[list[Step]]) -> None:
        self._lists = lists
        self._watches = watches
        self.lists_newest_first = False
        self.asked: list[str] = []
        self.quiet = anyio.Event()

    async def list(self, kind: object, namespace: str, *, resource_version: str, **_: object) -> Any:
        self.asked.append(f"list {resource_version!r}")
        answer = self._lists.pop(0)
        if isinstance(answer, StatusError):
            raise answer
        return answer

    async def watch_batches(
        self, kind: object, namespace: str, *, resource_version: str, **_: object
    ) -> AsyncGenerator[Sequence[WatchEvent[core.Pod]], None]:
        self.asked.append(f"watch {resource_version}")
        if not self._watches:
            self.quiet.set()
            await anyio.sleep_forever()
        yield []
        for step in self._watches.pop(0):
            if isinstance(step, StatusError):
                raise step
            if step is None:
                return
            yield step
        self.quiet.set()
        await anyio.sleep_forever()


def listed(revision: int, *pods: core.Pod) -> ListResult[core.Pod]:
    return ListResult(list(pods), str(revision))


def event(type_: str, obj: core.Pod) -> WatchEvent[core.Pod]:
    return WatchEvent(type_, obj, int(obj.metadata.resourceVersion))


class Recorder:
    """The events that handlers got, as text."""

    def __init__(self, informer: Informer[core.Pod], name: str = "") -> None:
        self.lines: list[str] = []
        self._name = name
        informer.add_handler(on_add=self._add, on_update=self._update, on_delete=self._delete)

    def _add(self, new: core.Pod) -> None:
        self.lines.append(f"{self._name}+{new.metadata.name}@{new.metadata.resourceVersion}")

    def _update(self, old: core.Pod, new: core.Pod) -> None:
        revisions = f"{old.metadata.resourceVersion}>{new.metadata.resourceVersion}"
        self.lines.append(f"{self._name}{new.metadata.name}@{revisions}")

    def _delete(self, last: core.Pod, stale: bool) -> None:
        stale_mark = "?" if stale else ""
        self.lines.append(f"{self._name}-{last.metadata.name}@{last.metadata.resourceVersion}{stale_mark}")


def informer_of(server: ScriptedServer, clock: FakeClock, **kwargs: Any) -> Informer[core.Pod]:
    return Informer(cast("Client", server), kinds.POD, clock=clock, rng=random.Random(1), **kwargs)


@asynccontextmanager
async def running(informer: Informer[core.Pod]) -> AsyncIterator[None]:
    with anyio.fail_after(LIMIT_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(informer.run)
            yield
            group.cancel_scope.cancel()


async def until_quiet(server: ScriptedServer, clock: FakeClock) -> None:
    """Move the clock over every back-off until the script has been played."""
    while not server.quiet.is_set():
        await clock.settle()
        if not server.quiet.is_set():
            await clock.wait_for_sleepers()
            await clock.advance(2.0)


async def play(
    lists: list[ListResult[core.Pod] | StatusError], watches: list[list[Step]]
) -> tuple[list[str], list[str]]:
    """Return the requests and the events."""
    server, clock = ScriptedServer(lists, watches), FakeClock()
    informer = informer_of(server, clock)
    recorder = Recorder(informer)
    async with running(informer):
        await until_quiet(server, clock)
    return server.asked, recorder.lines


async def test_a_list_then_changes_in_order() -> None:
    asked, lines = await play(
        [listed(10, pod("a", 5), pod("b", 7))],
        [[[event("MODIFIED", pod("a", 11)), event("ADDED", pod("c", 12))], [event("DELETED", pod("b", 13))]]],
    )
    assert asked == ["list '0'", "watch 10"]
    assert lines == ["+a@5", "+b@7", "a@5>11", "+c@12", "-b@13"]


async def test_its_state_names_the_scope_and_the_revisions() -> None:
    server, clock = ScriptedServer([listed(10, pod("a", 5))], [[[event("ADDED", pod("c", 12))]]]), FakeClock()
    informer = informer_of(server, clock, field_selector="spec.nodeName!=")
    async with running(informer):
        await until_quiet(server, clock)
    assert informer.state() == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "",
        "labelSelector": "",
        "fieldSelector": "spec.nodeName!=",
        "objects": {str(key_of(pod("a", 5))): "5", str(key_of(pod("c", 12))): "12"},
    }


async def test_with_the_gate_the_first_list_is_of_the_newest_state() -> None:
    server, clock = ScriptedServer([listed(20), listed(30)], [[errors.expired("old")]]), FakeClock()
    server.lists_newest_first = True
    async with running(informer_of(server, clock)):
        await until_quiet(server, clock)
    assert server.asked == ["list ''", "watch 20", "list '20'", "watch 30"]


async def test_a_server_that_lags_is_asked_for_the_newest_state() -> None:
    lagging = errors.too_large_resource_version(20, 9)
    asked, _ = await play([listed(20), lagging, lagging, listed(30)], [[errors.expired("old")]])
    assert asked == ["list '0'", "watch 20", "list '20'", "list ''", "list ''", "watch 30"]


async def test_an_ended_watch_goes_on_where_it_was_bookmarks_included() -> None:
    bookmark = WatchEvent("BOOKMARK", core.Pod(), 40)
    asked, lines = await play([listed(10)], [[[event("ADDED", pod("a", 11))], None], [[bookmark], None]])
    assert asked == ["list '0'", "watch 10", "watch 11", "watch 40"]
    assert lines == ["+a@11"]


async def test_a_broken_connection_does_not_cost_a_list() -> None:
    broken = errors.service_unavailable("connection refused")
    asked, lines = await play(
        [listed(10)], [[[event("ADDED", pod("a", 11))], broken], [broken], [[event("ADDED", pod("b", 12))]]]
    )
    assert asked == ["list '0'", "watch 10", "watch 11", "watch 11"]
    assert lines == ["+a@11", "+b@12"]


async def test_410_lists_again_and_reports_the_difference() -> None:
    asked, lines = await play(
        [
            listed(10, pod("same", 1), pod("changed", 2), pod("gone", 3), pod("remade", 4)),
            listed(50, pod("same", 1), pod("changed", 30), pod("remade", 40, uid="new"), pod("made", 45)),
        ],
        [[errors.expired("too old resource version: 10 (20)")]],
    )
    assert asked == ["list '0'", "watch 10", "list '10'", "watch 50"]
    assert lines == [
        *["+same@1", "+changed@2", "+gone@3", "+remade@4"],
        *["-gone@3?", "changed@2>30", "-remade@4?", "+remade@40", "+made@45"],
    ]


async def test_the_end_of_an_object_that_merged_events_did_not_show_is_that_of_the_former_one() -> None:
    server = ScriptedServer(
        [listed(10, pod("remade", 5))],
        [[[event("DELETED", pod("remade", 12, uid="new")), event("DELETED", pod("never-shown", 13))]]],
    )
    clock = FakeClock()
    informer = informer_of(server, clock)
    recorder = Recorder(informer)
    async with running(informer):
        await until_quiet(server, clock)
    assert recorder.lines == ["+remade@5", "-remade@5?"]
    assert informer.gaps == 1 + 2  # its list, and both deletions


async def test_a_failed_list_is_tried_again() -> None:
    unavailable = errors.service_unavailable("no")
    asked, lines = await play([unavailable, unavailable, listed(10, pod("a", 1))], [])
    assert asked == ["list '0'"] * 3 + ["watch 10"]
    assert lines == ["+a@1"]


async def test_a_server_whose_etcd_was_put_back_is_listed_again() -> None:
    asked, _ = await play(
        [listed(100), errors.too_large_resource_version(100, 7), listed(7)],
        [[errors.bad_request("no such watch")]],
    )
    assert asked == ["list '0'", "watch 100", "list '100'", "list ''", "watch 7"]


async def test_synced_after_the_handlers_have_seen_the_first_list() -> None:
    server, clock = ScriptedServer([listed(10, *(pod(f"p{i}", i + 1) for i in range(500)))], []), FakeClock()
    informer = informer_of(server, clock)
    recorder = Recorder(informer)
    assert not informer.synced
    async with running(informer):
        await informer.wait_synced()
        assert informer.synced
        assert len(recorder.lines) == len(informer) == 500
        assert informer.resource_version in ("", "10")


async def test_reading_by_name_namespace_and_index() -> None:
    server, clock = (
        ScriptedServer(
            [listed(10, pod("a", 1, node="n1"), pod("b", 2, node="n1"), pod("c", 3))],
            [
                [
                    [event("MODIFIED", pod("a", 11, node="n2")), event("DELETED", pod("b", 12, node="n1"))],
                    [event("MODIFIED", pod("c", 13, node="n2"))],
                ]
            ],
        ),
        FakeClock(),
    )

    def by_node(pod: core.Pod) -> list[str]:
        return [pod.spec.nodeName] if pod.spec.nodeName else []

    informer = informer_of(server, clock, indexers={"node": by_node})
    async with running(informer):
        await until_quiet(server, clock)
        assert {p.metadata.name for p in informer.by_index("node", "n2")} == {"a", "c"}
        assert informer.by_index("node", "n1") == []
        assert informer.index_values("node") == ["n2"]
        assert informer.get("b", "ns") is None
        found = informer.get("a", "ns")
        assert found is not None
        assert found.metadata.resourceVersion == "11"
        assert len(informer.list("ns")) == 2
        assert informer.list("other") == []
        with pytest.raises(KeyError):
            informer.by_index("nodes", "n1")


async def test_handlers_are_called_in_order_and_a_late_one_is_caught_up() -> None:
    server, clock = (
        ScriptedServer([listed(10, pod("a", 1))], [[[event("MODIFIED", pod("a", 11))]]]),
        FakeClock(),
    )
    informer = informer_of(server, clock)
    first = Recorder(informer, "1")
    second = Recorder(informer, "2")
    second.lines = first.lines
    async with running(informer):
        await until_quiet(server, clock)
        late = Recorder(informer, "3")
    assert first.lines == ["1+a@1", "2+a@1", "1a@1>11", "2a@1>11"]
    assert late.lines == ["3+a@11"]


async def test_an_object_given_to_a_handler_never_changes() -> None:
    server = ScriptedServer([listed(10, pod("a", 1))], [[[event("MODIFIED", pod("a", 11, node="n1"))]]])
    clock = FakeClock()
    informer = informer_of(server, clock)
    kept: list[core.Pod] = []
    informer.add_handler(on_add=kept.append)
    async with running(informer):
        await until_quiet(server, clock)
    assert kept == [pod("a", 1)]


async def test_a_handler_that_raises_ends_the_informer() -> None:
    server, clock = ScriptedServer([listed(10, pod("a", 1))], []), FakeClock()
    informer = informer_of(server, clock)

    def broken(_: core.Pod) -> None:
        raise KeyError("bug")

    informer.add_handler(on_add=broken)
    with pytest.raises(KeyError):
        await informer.run()


async def test_a_batch_handler_is_called_after_all_of_a_message() -> None:
    server = ScriptedServer(
        [listed(10, pod("a", 1))], [[[event("MODIFIED", pod("a", 11)), event("ADDED", pod("b", 12))]]]
    )
    clock = FakeClock()
    informer = informer_of(server, clock)
    recorder = Recorder(informer)
    informer.add_batch_handler(lambda: recorder.lines.append("."))
    async with running(informer):
        await until_quiet(server, clock)
    assert recorder.lines == ["+a@1", ".", "a@1>11", "+b@12", "."]
