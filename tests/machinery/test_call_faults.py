"""Faults of calls: which calls a rule covers, what each action does, and when what waits continues."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import astuple

import anyio
import anyio.abc
import grpc
import grpc.aio
import pytest

from nominee.completion.candidates import FAULT_ACTIONS, FAULT_METHODS
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.runtime.faults.action_chain import ActionError
from nominee.machinery.runtime.faults.call_faults import ACTIONS, FAULTS, Call, Faults, Stream, Verdict
from tests.support.patience import PATIENCE_SECONDS

BIND = Call("apiserver", "Bind", "pods")
WATCH_PODS = Call("apiserver", "Watch", "pods")
DEADLINE_SECONDS = 30.0


def faults(clock: FakeClock | None = None) -> Faults:
    made = Faults(clock=clock or FakeClock())
    made.declare("apiserver", ("Get", "Watch", "Create", "Bind", "Evict"))
    made.declare("etcd", ("Range", "Txn", "Watch"), refused=("merge",))
    return made


class Server:
    """Counts the calls that reach it, and keeps the deadline of the last one."""

    def __init__(self) -> None:
        self.calls = 0
        self.seconds_max = 0.0

    async def __call__(self, seconds_max: float) -> str:
        self.calls += 1
        self.seconds_max = seconds_max
        return "done"


async def code_of(call: Callable[[], Awaitable[object]]) -> grpc.StatusCode:
    """Return the gRPC code of a call that must fail."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call()
    return caught.value.code()


@asynccontextmanager
async def group() -> AsyncIterator[anyio.abc.TaskGroup]:
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as made:
            yield made


@pytest.mark.parametrize(
    ("rule", "call", "covered"),
    [
        (("*", "*", "*"), BIND, True),
        (("apiserver", "*", "*"), Call("apiserver-1", "Get"), True),
        (("apiserver-1", "*", "*"), Call("apiserver-0", "Get"), False),
        (("etcd", "*", "*"), BIND, False),
        (("*", "Bind", "*"), BIND, True),
        (("*", "Create", "*"), BIND, True),
        (("*", "Bind", "*"), Call("apiserver", "Create", "pods"), False),
        (("*", "*", "Pod"), BIND, True),
        (("*", "*", "po"), BIND, True),
        (("*", "*", "leases"), Call("apiserver", "Update", "leases.coordination.k8s.io"), True),
        (("*", "*", "leases"), BIND, False),
        (("*", "*", "pods"), Call("etcd", "Txn"), False),
    ],
)
async def test_the_calls_that_a_rule_covers(rule: tuple[str, str, str], call: Call, covered: bool) -> None:
    subject, server = faults(), Server()
    subject.put("cut", *rule)
    if covered:
        assert (
            await code_of(lambda: subject.call(call, server, DEADLINE_SECONDS)) is grpc.StatusCode.UNAVAILABLE
        )
    else:
        assert await subject.call(call, server, DEADLINE_SECONDS) == "done"
    assert server.calls == (0 if covered else 1)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (("break",), "break: expected off, cut, "),
        (("delay",), r"delay takes whole milliseconds"),
        (("cut(1)",), "cut takes no argument"),
        (("cut", "apisrver"), "does not call apisrver; it calls apiserver"),
        (("cut", "apiserver", "Bnd"), "no method Bnd of apiserver; there are Bind"),
        (("cut", "*", "*", "podz"), "no kind podz; there are pods"),
        (("hold", "*", "Bind"), "is for the method Watch, not Bind"),
        (("hold->cut",), "are not combined with other actions"),
        (("merge", "etcd"), "merge is not possible for watches of etcd"),
    ],
)
def test_a_rule_that_cannot_act_is_refused(rule: tuple[str, ...], message: str) -> None:
    subject = faults()
    with pytest.raises(ActionError, match=message):
        subject.put(*rule)
    assert subject.rules == ()


async def test_counts_and_off_as_in_failpoints() -> None:
    subject, server = faults(), Server()
    subject.put("1*off->1*cut", method="Bind")

    async def call() -> str:
        return await subject.call(BIND, server, DEADLINE_SECONDS)

    assert await call() == "done"
    assert await code_of(call) is grpc.StatusCode.UNAVAILABLE
    assert await call() == "done"
    assert [(state.method, state.fired) for state in subject.states()] == [("Bind", 1)]


async def test_off_removes_what_its_scope_includes() -> None:
    subject = faults()
    subject.put("cut", "apiserver", "Bind")
    subject.put("cut", "apiserver", "*", "Pod")
    subject.put("delay(5)", "apiserver", "*", "po")  # the same scope: replaces
    subject.put("cut", "etcd")
    subject.put("cut", "apiserver-1", "Evict")
    assert [(s.to, s.method, s.kind, s.action) for s in subject.states()] == [
        ("apiserver", "Bind", "*", "cut"),
        ("apiserver", "*", "pods", "delay(5)"),
        ("etcd", "*", "*", "cut"),
        ("apiserver-1", "Evict", "*", "cut"),
    ]
    subject.put("off", "apiserver-1", "Create")
    assert [state.method for state in subject.states()] == ["Bind", "*", "*"]
    subject.put("cut", "apiserver-1")
    subject.put("off", "apiserver")
    assert [state.to for state in subject.states()] == ["etcd"]
    subject.put("off")
    assert subject.rules == ()


@pytest.mark.parametrize(("action", "sent"), [("drop-request", 0), ("drop-response", 1), ("delay(30000)", 0)])
async def test_a_dropped_call_ends_at_its_deadline(action: str, sent: int) -> None:
    clock, server = FakeClock(), Server()
    subject = faults(clock)
    subject.put(action)
    ended: list[grpc.StatusCode] = []

    async def call() -> None:
        ended.append(await code_of(lambda: subject.call(BIND, server, DEADLINE_SECONDS)))

    async with group() as tasks:
        tasks.start_soon(call)
        await clock.wait_for_sleepers()
        await clock.advance(DEADLINE_SECONDS - 1)
        assert (server.calls, ended) == (sent, [])
        await clock.advance(1)
    assert (server.calls, ended) == (sent, [grpc.StatusCode.DEADLINE_EXCEEDED])


async def test_the_answer_of_a_call_that_was_carried_out_is_lost_at_once() -> None:
    subject, server = faults(), Server()
    subject.put("1*cut-response", method="Bind")

    async def call() -> str:
        return await subject.call(BIND, server, DEADLINE_SECONDS)

    assert await code_of(call) is grpc.StatusCode.UNAVAILABLE
    assert server.calls == 1
    assert await call() == "done"


async def test_calls_are_counted_while_there_are_rules() -> None:
    subject, server = faults(), Server()
    subject.put("0%cut")
    await subject.call(BIND, server, DEADLINE_SECONDS)
    await subject.call(BIND, server, DEADLINE_SECONDS)
    with subject.stream(WATCH_PODS, lambda: None):
        assert [astuple(each) for each in subject.counts()] == [
            ("apiserver", "Bind", "pods", 2),
            ("apiserver", "Watch", "pods", 1),
        ]


async def test_a_delayed_call_is_sent_later() -> None:
    clock, server = FakeClock(), Server()
    subject = faults(clock)
    subject.put("delay(250)")
    async with group() as tasks:
        tasks.start_soon(subject.call, BIND, server, DEADLINE_SECONDS)
        await clock.wait_for_sleepers()
        assert server.calls == 0
        await clock.advance(0.25)
        assert (server.calls, server.seconds_max) == (1, DEADLINE_SECONDS - 0.25)


@pytest.mark.parametrize("action", ["cut", "1*cut", "cut-response", "relist"])
async def test_open_streams_end(action: str) -> None:
    subject = faults()
    ended: list[str] = []
    with (
        subject.stream(WATCH_PODS, lambda: ended.append("pods")),
        subject.stream(Call("apiserver", "Watch", "nodes"), lambda: ended.append("nodes")),
    ):
        subject.put("hold", kind="nodes")
        assert ended == []
        subject.put(action, kind="pods")
        assert ended == ["pods"]


async def test_a_cut_stream_cannot_be_opened_until_the_rule_is_removed() -> None:
    subject = faults()
    subject.put("cut", "apiserver")
    assert await code_of(lambda: subject.open(WATCH_PODS)) is grpc.StatusCode.UNAVAILABLE
    subject.clear()
    assert await subject.open(WATCH_PODS) == "go"


async def test_a_dropped_stream_is_silent_and_breaks_when_the_rule_is_removed() -> None:
    subject = faults()
    subject.put("drop-request", "apiserver", "Watch")
    codes: list[grpc.StatusCode] = []

    async def call(send: Callable[[], Awaitable[object]]) -> None:
        codes.append(await code_of(send))

    async with group() as tasks:
        with subject.stream(WATCH_PODS, lambda: None) as stream:
            tasks.start_soon(call, lambda: subject.open(WATCH_PODS))
            tasks.start_soon(call, lambda: subject.message(stream))
            while subject.states()[0].waiting < 2:
                await anyio.lowlevel.checkpoint()
            assert codes == []
            subject.clear()
    assert codes == [grpc.StatusCode.UNAVAILABLE] * 2


async def test_a_held_message_is_subject_to_the_rule_that_replaces_hold() -> None:
    subject = faults()
    delivered: list[Verdict] = []

    async def read(stream: Stream) -> None:
        delivered.append(await subject.message(stream))
        delivered.append(await subject.message(stream))

    async with group() as tasks:
        subject.put("hold", kind="pods")
        with subject.stream(WATCH_PODS, lambda: None) as stream:
            tasks.start_soon(read, stream)
            while not subject.states()[0].waiting:
                await anyio.lowlevel.checkpoint()
            assert delivered == []
            subject.put("1*relist", kind="pods")
            while len(delivered) < 2:
                await anyio.lowlevel.checkpoint()
    assert delivered == ["relist", "go"]


async def test_a_merging_stream_is_ended_when_its_rule_is_removed() -> None:
    subject = faults()
    ended: list[str] = []
    with subject.stream(WATCH_PODS, lambda: ended.append("pods")) as stream:
        subject.put("merge", kind="pods")
        assert (await subject.message(stream), stream.released, ended) == ("merge", False, [])
        subject.put("off", kind="pods")
        assert (stream.released, ended) == (True, ["pods"])


def test_completion_offers_what_clients_declare() -> None:
    for module in (
        "nominee.machinery.client.api_client",
        "nominee.apiserver.storage.channel",
        "nominee.autoscaler.shell.provider",
    ):
        importlib.import_module(module)
    assert FAULTS.servers() == {server: sorted(methods) for server, methods in FAULT_METHODS.items()}
    assert set(FAULT_ACTIONS) == {name for name, argument in ACTIONS.items() if argument == "none"}
