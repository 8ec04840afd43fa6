"""Fair queuing: who is served, in which order, and that nothing is lost."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from nominee.apiserver.flow_control.configuration import Queuing
from nominee.apiserver.flow_control.queue_set import Demand, QueueSet, Request
from nominee.apiserver.flow_control.shuffle_sharding import flow_hash, hand

TWO = Queuing(queues=2, hand_size=1, queue_length_limit=50)


def arrive(queues: QueueSet, card: int, now: float, seats: int = 1, name: str = "") -> Request | None:
    request = queues.arrive((card,), seats, now)
    if request is not None:
        request.context = name or str(card)
        if not request.executing:
            queues.dispatch(now)
    return request


def test_free_seats_are_taken_at_once() -> None:
    queues = QueueSet(TWO, 2, 0.0)
    first, second, third = (arrive(queues, 0, 0.0) for _ in range(3))
    assert first is not None
    assert second is not None
    assert third is not None
    assert [r.executing for r in (first, second, third)] == [True, True, False]
    assert list(queues.finish(first, 1.0)) == [third]
    assert (queues.executing, queues.waiting, queues.seats) == (2, 0, 2)


def test_a_flood_does_not_keep_others_waiting() -> None:
    """One flow has 40 requests in its queue; another's two come in between, not behind."""
    queues = QueueSet(TWO, 1, 0.0)
    running = arrive(queues, 0, 0.0)
    assert running is not None
    for _ in range(40):
        arrive(queues, 0, 0.0, name="flood")
    for _ in range(2):
        arrive(queues, 1, 0.001, name="quiet")
    served = []
    now = 0.0
    while running is not None:
        now += 0.01
        (running,) = queues.finish(running, now) or (None,)
        if running is not None:
            served.append(running.context)
    assert served.count("flood") == 40
    assert [index for index, name in enumerate(served) if name == "quiet"][1] <= 4


def test_work_is_shared_by_seat_seconds() -> None:
    """A flow whose requests take three times as long gets a third as many of them through."""
    queues = QueueSet(TWO, 1, 0.0)
    running = arrive(queues, 0, 0.0, name="0")
    for _ in range(50):
        arrive(queues, 0, 0.0, name="0")
        arrive(queues, 1, 0.0, name="1")
    served: Counter[str] = Counter()
    now = 0.0
    for _ in range(60):
        assert running is not None
        now += 0.03 if running.context == "0" else 0.01
        served[str(running.context)] += 1
        (running,) = queues.finish(running, now)
    assert 2.4 < served["1"] / served["0"] < 3.6


def test_a_full_queue_refuses_and_another_does_not() -> None:
    queues = QueueSet(Queuing(2, 1, 3), 1, 0.0)
    assert arrive(queues, 0, 0.0) is not None
    assert all(arrive(queues, 0, 0.0) is not None for _ in range(3))
    assert arrive(queues, 0, 0.0) is None
    assert arrive(queues, 1, 0.0) is not None


def test_without_queues_what_does_not_fit_is_refused() -> None:
    queues = QueueSet(None, 2, 0.0)
    first = queues.arrive((), 2, 0.0)
    assert first is not None
    assert queues.arrive((), 1, 0.0) is None
    queues.finish(first, 1.0)
    assert queues.arrive((), 1, 1.0) is not None


def test_who_wants_more_seats_than_there_are_is_served_alone() -> None:
    queues = QueueSet(TWO, 3, 0.0)
    small = arrive(queues, 0, 0.0)
    wide = arrive(queues, 1, 0.0, seats=10)
    assert small is not None
    assert wide is not None
    assert not wide.executing
    assert list(queues.finish(small, 1.0)) == [wide]
    after = arrive(queues, 0, 1.0)
    assert after is not None
    assert not after.executing
    assert list(queues.finish(wide, 2.0)) == [after]


def test_a_hand_spreads_a_flow_over_its_queues() -> None:
    queues = QueueSet(Queuing(8, 4, 10), 0, 0.0)
    cards = hand(flow_hash("s", "alice"), 8, 4)
    for _ in range(8):
        request = queues.arrive(cards, 1, 0.0)
        assert request is not None
        assert request.queue is not None
    lengths = [len(queue.waiting) for queue in queues._queues]
    assert sorted(lengths) == [0, 0, 0, 0, 2, 2, 2, 2]


def test_more_seats_serve_who_waits() -> None:
    queues = QueueSet(TWO, 0, 0.0)
    waiting = [arrive(queues, 0, 0.0) for _ in range(3)]
    assert list(queues.set_limit(2, 1.0)) == waiting[:2]


@given(entropy=st.integers(0, 2**64 - 1), deck=st.integers(1, 200), size=st.integers(1, 12))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_hands_have_different_cards_of_the_deck(entropy: int, deck: int, size: int) -> None:
    cards = hand(entropy, deck, size)
    assert len(set(cards)) == len(cards) == min(size, deck)
    assert all(0 <= card < deck for card in cards)


def test_hands_are_even() -> None:
    dealt = Counter(hand(entropy, 5, 2) for entropy in range(20 * 50))
    assert set(dealt.values()) == {50}


def test_demand_is_a_mean_over_time() -> None:
    demand = Demand(0.0)
    demand.change(4, 0.0)
    demand.change(-4, 1.0)
    mean, deviation, highest = demand.take(4.0)
    assert (mean, highest) == (1.0, 4)
    assert abs(deviation - 3**0.5) < 1e-9
    assert demand.take(5.0) == (0.0, 0.0, 0)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["arrive", "finish", "give up", "limit"]), st.integers(0, 7), st.integers(1, 5)
    ),
    max_size=80,
)


@given(steps=STEPS)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_nothing_is_lost_and_seats_are_never_exceeded(steps: list[tuple[str, int, int]]) -> None:
    queues = QueueSet(Queuing(4, 2, 3), 3, 0.0)
    alive: list[Request] = []
    now = 0.0
    for action, number, seats in steps:
        now += 0.01 * number
        if action == "arrive":
            request = queues.arrive(hand(number, 4, 2), seats, now)
            if request is not None:
                alive.append(request)
                if not request.executing:
                    queues.dispatch(now)
        elif action == "limit":
            queues.set_limit(number, now)
        elif alive:
            request = alive[number % len(alive)]
            if request.executing and action == "finish":
                alive.remove(request)
                queues.finish(request, now)
            elif not request.executing and action == "give up":
                alive.remove(request)
                queues.give_up(request, now)
        running = [request for request in alive if request.executing]
        waiting = [request for request in alive if not request.executing]
        assert queues.executing == len(running)
        assert queues.waiting == len(waiting) == sum(len(queue.waiting) for queue in queues._queues)
        assert queues.seats == sum(request.seats for request in running)
        assert queues.waiting_seats == sum(request.seats for request in waiting)
        assert queues.demand.value == queues.seats + queues.waiting_seats
        assert queues._active == sum(bool(queue.waiting or queue.executing) for queue in queues._queues)
        assert not (waiting and not running and queues.limit > 0), "idle seats while requests wait"
    while alive:
        running = [request for request in alive if request.executing]
        if not running:
            assert queues.limit == 0
            queues.set_limit(1, now)
            continue
        alive.remove(running[0])
        queues.finish(running[0], now)
    assert (queues.executing, queues.waiting, queues.seats, queues._active) == (0, 0, 0, 0)
