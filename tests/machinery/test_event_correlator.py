"""Events of one source: aggregated, counted and limited. Source: client-go 1.36, tools/record."""

from __future__ import annotations

from nominee.machinery.api.pb import core
from nominee.machinery.events.correlator import Correlated, CorrelatorOptions, EventCorrelator
from nominee.machinery.runtime.clock import from_time, to_time

START = 1_000_000.0


class Source:
    """Sends events through one correlator; names count them."""

    def __init__(self, options: CorrelatorOptions | None = None) -> None:
        self.correlator = EventCorrelator(options)
        self.now = START
        self._number = 0

    def send(
        self,
        message: str = "m",
        *,
        reason: str = "R",
        name: str = "p",
        path: str = "",
        component: str = "c",
        host: str = "",
    ) -> Correlated | None:
        self._number += 1
        event = core.Event(reason=reason, message=message, type="Normal", count=1)
        event.metadata.name = f"event-{self._number}"
        event.involvedObject.name, event.involvedObject.fieldPath = name, path
        event.source.component, event.source.host = component, host
        event.firstTimestamp.CopyFrom(to_time(self.now))
        event.lastTimestamp.CopyFrom(to_time(self.now))
        return self.correlator.correlate(event, self.now)


def sent(correlated: Correlated | None) -> tuple[str, int, bool, str]:
    """Name, count, whether it is new, and message."""
    assert correlated is not None
    event = correlated.event
    return event.metadata.name, event.count, correlated.created, event.message


def test_each_message_is_an_event_and_equal_ones_are_counted() -> None:
    source = Source()
    assert sent(source.send("a")) == ("event-1", 1, True, "a")
    assert sent(source.send("b")) == ("event-2", 1, True, "b")
    source.now += 60.0
    again = source.send("a")
    assert sent(again) == ("event-1", 2, False, "a")
    assert again is not None
    assert from_time(again.event.firstTimestamp) == START
    assert from_time(again.event.lastTimestamp) == START + 60.0


def test_what_makes_events_different() -> None:
    source = Source()
    source.send()
    for changed in (
        {"reason": "Other"},
        {"name": "q"},
        {"path": "spec.containers{c}"},
        {"component": "d"},
        {"host": "n1"},
    ):
        assert sent(source.send(**changed))[1:3] == (1, True), changed


def test_the_tenth_message_in_ten_minutes_is_combined() -> None:
    source = Source()
    for index in range(9):
        assert sent(source.send(f"m{index}"))[1:] == (1, True, f"m{index}")
    assert sent(source.send("m9")) == ("event-10", 1, True, "(combined from similar events): m9")
    assert sent(source.send("m10")) == ("event-10", 2, False, "(combined from similar events): m10")
    assert sent(source.send("m3")) == ("event-4", 2, False, "m3"), "one of the first nine"
    assert sent(source.send("m9", reason="Other"))[1:] == (1, True, "m9")
    source.now += 601.0
    assert sent(source.send("m9"))[1:] == (1, True, "m9"), "the similar ones are too old"


def test_a_source_has_a_burst_for_each_object_and_then_one_event_in_five_minutes() -> None:
    source = Source()
    for _ in range(25):
        assert source.send() is not None
    assert source.send(reason="Other") is None
    assert source.send(name="q") is not None
    assert source.send(host="n1") is not None
    source.now += 299.0
    assert source.send() is None
    source.now += 1.0
    assert sent(source.send())[1] == 27, "those that were not sent are counted"
    assert source.send() is None


def test_an_event_that_was_never_sent_is_a_change_of_one_that_is_not_there() -> None:
    """The recorder creates it then, with its count."""
    source = Source(CorrelatorOptions(burst=1))
    source.send("first")
    assert source.send("second") is None
    source.now += 300.0
    assert sent(source.send("second")) == ("event-2", 2, False, "second")


def test_the_spam_key_decides_which_events_share_a_burst() -> None:
    source = Source(CorrelatorOptions(burst=1, spam_key=lambda event: event.reason))
    assert source.send() is not None
    assert source.send(name="q") is None
    assert source.send(reason="Other") is not None


def test_memory_is_bounded() -> None:
    source = Source(CorrelatorOptions(keys_max=2))
    for name in "abc":
        source.send(name=name)
    assert sent(source.send(name="c"))[1] == 2
    assert sent(source.send(name="a"))[1] == 1, "it was forgotten"
