"""The bookkeeping of batched calls: a table of its rules, and both ends against a model."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from nominee.machinery.client.calls import call_batching
from nominee.machinery.client.calls.call_batching import (
    BYTES_MAX,
    CALLS_MAX,
    OPEN_MAX,
    TURNS_MAX,
    WAITING_MAX,
    ClientCalls,
    ProtocolError,
    ServerCalls,
)


def client_with(*sizes: int) -> ClientCalls[str]:
    """Return the client's end with calls that wait."""
    calls: ClientCalls[str] = ClientCalls()
    for index, size in enumerate(sizes):
        calls.add(f"call {index}", size)
    return calls


def sent(calls: ClientCalls[str], turns: int = 0) -> int:
    """Return how many calls the next message has; 0 if none leaves."""
    message = calls.take(turns)
    return 0 if message is None else len(message.calls)


def test_all_calls_that_are_ready_share_a_message() -> None:
    calls = client_with(1, 1, 1)
    assert calls.wants_to_send()
    message = calls.take(0)
    assert message is not None
    assert message.calls == [(1, "call 0"), (2, "call 1"), (3, "call 2")]
    assert not calls.wants_to_send()
    assert calls.take(TURNS_MAX) is None


def test_a_second_message_waits_for_the_acknowledgement_or_some_turns() -> None:
    calls = client_with(1)
    assert sent(calls) == 1
    calls.add("later", 1)
    assert calls.wants_to_send()
    assert [sent(calls, turns) for turns in range(TURNS_MAX)] == [0] * TURNS_MAX
    assert sent(calls, TURNS_MAX) == 1
    calls.add("third", 1)
    assert not calls.wants_to_send(), "two messages are unacknowledged"
    assert sent(calls, TURNS_MAX) == 0
    calls.acknowledge(1)
    assert sent(calls, TURNS_MAX) == 1
    calls.add("fourth", 1)
    calls.acknowledge(3)
    assert sent(calls) == 1


@pytest.mark.parametrize(
    ("sizes", "messages"),
    [
        ([1] * (CALLS_MAX + 1), [CALLS_MAX, 1]),
        ([BYTES_MAX // 2, BYTES_MAX // 2, 1], [2, 1]),
        ([BYTES_MAX, BYTES_MAX], [1, 1]),
    ],
)
def test_limits_of_a_message(sizes: list[int], messages: list[int]) -> None:
    calls = client_with(*sizes)
    found = []
    for number in range(1, len(messages) + 1):
        found.append(sent(calls))
        calls.acknowledge(number)
    assert found == messages
    assert not calls.wants_to_send()


def test_calls_beyond_the_limit_of_open_ones_wait_at_the_client() -> None:
    calls = client_with(*[1] * (OPEN_MAX + 2))
    count = number = 0
    while calls.wants_to_send():
        count += sent(calls)
        number += 1
        calls.acknowledge(number)
    assert count == OPEN_MAX
    assert calls.finish(1) == "call 0"
    assert sent(calls) == 1


def test_few_calls_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = client_with(1)
    assert calls.has_room()
    monkeypatch.setattr(call_batching, "WAITING_MAX", 1)
    assert not calls.has_room()
    assert WAITING_MAX > OPEN_MAX


def test_a_call_that_is_given_up() -> None:
    calls = client_with(1, 1)
    assert calls.give_up(1) == "call 0", "it waits: the server has not heard of it"
    message = calls.take(0)
    assert message is not None
    assert (message.calls, message.cancellations) == ([(2, "call 1")], [])
    assert calls.give_up(2) == "call 1"
    assert calls.give_up(2) is None
    assert calls.finish(2) is None, "its answer comes too late"
    calls.acknowledge(1)
    message = calls.take(0)
    assert message is not None
    assert (message.calls, message.cancellations) == ([], [2])


@pytest.mark.parametrize("count", [0, 3])
def test_an_acknowledgement_that_cannot_be(count: int) -> None:
    calls = client_with(1)
    sent(calls)
    calls.acknowledge(1)
    with pytest.raises(ProtocolError, match="acknowledged"):
        calls.acknowledge(count)


def test_a_broken_stream_drops_open_and_waiting_calls() -> None:
    calls = client_with(1)
    sent(calls)
    calls.add("waiting", 1)
    assert calls.drop_all() == ["call 0", "waiting"]
    assert calls.is_idle()


def server_with(*numbers: int, messages: int = 1) -> ServerCalls[str]:
    """Return the server's end with open calls."""
    calls: ServerCalls[str] = ServerCalls()
    for _ in range(messages):
        calls.message_read()
    for number in numbers:
        calls.begin(number)
    return calls


def test_an_acknowledgement_rides_with_an_answer() -> None:
    calls = server_with(1)
    assert not calls.wants_to_send()
    assert calls.take(TURNS_MAX) is None
    calls.answer(1, "done", 4)
    assert calls.take(0) == (["done"], 1)
    assert calls.is_idle()


def test_two_messages_are_acknowledged_without_an_answer() -> None:
    calls = server_with(1, 2, messages=2)
    assert calls.wants_to_send()
    assert calls.take(TURNS_MAX - 1) is None, "an answer may come in one of the next turns"
    assert calls.take(TURNS_MAX) == ([], 2)
    assert not calls.wants_to_send()


def test_answers_wait_some_turns_for_those_of_other_open_calls() -> None:
    calls = server_with(1, 2)
    calls.answer(1, "first", 1)
    assert calls.take(0) is None
    calls.answer(2, "second", 1)
    assert calls.take(0) == (["first", "second"], 1)


def test_limits_of_a_message_of_answers() -> None:
    calls = server_with(*range(CALLS_MAX + 1))
    for number in range(CALLS_MAX + 1):
        calls.answer(number, "x", 1)
    first, second = calls.take(TURNS_MAX), calls.take(TURNS_MAX)
    assert first is not None
    assert second is not None
    assert (len(first[0]), len(second[0])) == (CALLS_MAX, 1)
    calls = server_with(1, 2)
    for number in (1, 2):
        calls.answer(number, f"large {number}", BYTES_MAX + 1)
    assert calls.take(0) == (["large 1"], 1)
    assert calls.take(0) == (["large 2"], 1)


def test_what_a_server_refuses() -> None:
    calls = server_with(1)
    with pytest.raises(ProtocolError, match="call 1 is open already"):
        calls.begin(1)
    calls = server_with(*range(2 * OPEN_MAX))
    calls.answer(0, "unread", 1)
    with pytest.raises(ProtocolError, match="calls are open"):
        calls.begin(2 * OPEN_MAX)
    calls.cancel(1)
    calls.begin(2 * OPEN_MAX)


class BothEnds(RuleBasedStateMachine):
    """A client and a server with messages under way in both directions, and calls that hang."""

    def __init__(self) -> None:
        super().__init__()
        self.client: ClientCalls[int] = ClientCalls()
        self.server: ServerCalls[int] = ServerCalls()
        self.up: list[tuple[list[int], list[int]]] = []
        self.down: list[tuple[list[int], int]] = []
        self.made: set[int] = set()
        self.answered: set[int] = set()
        self.given_up: set[int] = set()
        self.at_server: set[int] = set()

    @rule(size=st.sampled_from([1, BYTES_MAX // 3, BYTES_MAX]))
    def call(self, size: int) -> None:
        number = self.client.add(len(self.made) + 1, size)
        assert number not in self.made
        self.made.add(number)

    @rule(turns=st.sampled_from([0, TURNS_MAX]))
    def client_writes(self, turns: int) -> None:
        message = self.client.take(turns)
        if message is not None:
            assert message.calls or message.cancellations
            self.up.append(([number for number, _ in message.calls], message.cancellations))

    @precondition(lambda self: self.up)
    @rule()
    def server_reads(self) -> None:
        calls, cancelled = self.up.pop(0)
        self.server.message_read()
        for number in calls:
            self.server.begin(number)
            self.at_server.add(number)
        for number in cancelled:
            self.server.cancel(number)
            self.at_server.discard(number)

    @precondition(lambda self: self.at_server)
    @rule(data=st.data())
    def server_answers(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.at_server)))
        self.at_server.remove(number)
        self.server.answer(number, number, 1)

    @rule(turns=st.sampled_from([0, TURNS_MAX]))
    def server_writes(self, turns: int) -> None:
        due = self.server.take(turns)
        if due is not None:
            self.down.append(due)

    @precondition(lambda self: self.down)
    @rule()
    def client_reads(self) -> None:
        answers, acknowledged = self.down.pop(0)
        self.client.acknowledge(acknowledged)
        for number in answers:
            found = self.client.finish(number)
            assert (found is None) == (number in self.given_up), number
            if found is not None:
                assert number not in self.answered, "one answer for a call"
                self.answered.add(number)

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.made)))
        if self.client.give_up(number) is not None:
            assert number not in self.answered
            self.given_up.add(number)

    @invariant()
    def few_messages_are_under_way(self) -> None:
        assert len(self.up) <= call_batching.UNACKNOWLEDGED_MAX

    def teardown(self) -> None:
        """Let both ends run while the calls at the server hang: every call must reach it."""
        hanging = set(self.at_server)
        for _ in range(len(self.made) * 2 + 8):
            self.client_writes(TURNS_MAX)
            while self.up:
                self.server_reads()
            self.server_writes(TURNS_MAX)
            while self.down:
                self.client_reads()
        assert hanging - self.given_up <= self.at_server
        assert self.made == self.answered | self.given_up | self.at_server
        assert not self.client.wants_to_send()
        for number in sorted(self.at_server):
            self.at_server.remove(number)
            self.server.answer(number, number, 1)
        while (due := self.server.take(TURNS_MAX)) is not None:
            self.down.append(due)
            self.client_reads()
        assert self.client.is_idle()
        assert self.server.is_idle()


TestBothEnds = BothEnds.TestCase
