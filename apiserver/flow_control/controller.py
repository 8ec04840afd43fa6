"""Flow control as the fronts use it: a ticket for each request, given back when the request is over.

    ticket = flow_control.arrive(user, attributes)
    try:
        if not ticket.admitted:
            await ticket.wait()       # StatusError 429
        ...
    finally:
        ticket.leave()

With free seats this costs a look-up and some additions. Source: kube-apiserver 1.36,
server/filters/priority-and-fairness.go, util/flowcontrol/apf_controller.go.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import anyio
from cachetools import FIFOCache

from nominee.apiserver.flow_control import borrowing
from nominee.apiserver.flow_control import seats as seats_rules
from nominee.apiserver.flow_control.borrowing import Bounds
from nominee.apiserver.flow_control.configuration import (
    Configuration,
    Level,
    Schema,
    level_of,
    schema_of,
)
from nominee.apiserver.flow_control.counts import Counts
from nominee.apiserver.flow_control.queue_set import QueueSet, Request
from nominee.apiserver.flow_control.retry_after import RetryAfter
from nominee.apiserver.flow_control.seats import Stored
from nominee.apiserver.flow_control.shuffle_sharding import flow_hash, hand
from nominee.apiserver.kinds.flowcontrol import bootstrap
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import User
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import flowcontrol, meta
from nominee.machinery.runtime.clock import Clock

TOO_MANY = "Too many requests, please try again later."
WAIT_SECONDS_MAX = 15.0
"""The limit of a wait in a queue: a quarter of the 60 s that a request may take."""
_KNOWN_MAX = 4096
"""Kinds of requests whose classification is cached; made-up names must not fill the memory."""
_Key = tuple[str, tuple[str, ...], str, str, str, str, str, str]
"""User, groups; verb, group, resource, subresource, namespace, path."""
_READ_VERBS = frozenset({"get", "list", "watch"})


@dataclass(frozen=True, slots=True)
class Limits:
    """The flags `--max-requests-inflight` and `--max-mutating-requests-inflight`.

    Their sum is the server's number of seats. Without `fair` each is a limit of its own; 0 means no limit.
    """

    reading: int = 400
    mutating: int = 200
    fair: bool = True
    wait_seconds: float = WAIT_SECONDS_MAX

    @property
    def seats(self) -> int:
        return self.reading + self.mutating


class LevelState:
    """A priority level in force: its queues, its seats, and the Retry-After of its rejections."""

    __slots__ = ("bounds", "counts", "exempt", "level", "most_seats", "queues", "retry_after", "smoothed")

    def __init__(self, level: Level, bounds: Bounds, now: float) -> None:
        self.level = level
        self.exempt = level.exempt
        self.bounds = bounds
        self.most_seats = seats_rules.seats_max(bounds.nominal)
        # An exempt level has no queues and no limit, but its demand counts.
        self.queues = QueueSet(None if level.exempt else level.queuing, bounds.nominal, now)
        self.retry_after = RetryAfter()
        self.smoothed = 0.0
        self.counts: dict[str, Counts] = {}

    def counts_of(self, schema: str) -> Counts:
        found = self.counts.get(schema)
        if found is None:
            found = self.counts[schema] = Counts()
        return found


class _Classification:
    """The classification of a user's requests of one kind: schema, level and queues."""

    __slots__ = ("counts", "hand", "reads", "schema", "state", "watch")

    def __init__(self, schema: Schema, state: LevelState, cards: tuple[int, ...], asked: Attributes) -> None:
        self.schema = schema
        self.state = state
        self.hand = cards
        self.counts = state.counts_of(schema.name)
        self.watch = asked.verb == "watch"
        self.reads = asked.verb in _READ_VERBS


class Ticket:
    """The place of one request, `admitted` or not yet. Call `leave` in any case; a second call is ignored."""

    __slots__ = ("_classified", "_control", "_future", "_gone", "_request", "_seats", "_started", "admitted")

    def __init__(self, control: FlowControl, classified: _Classification, seats: int, started: float) -> None:
        self._control = control
        self._classified = classified
        self._seats = seats
        self._started = started
        self._request: Request | None = None
        self._future: asyncio.Future[None] | None = None
        self._gone = False
        self.admitted = False

    @property
    def schema_uid(self) -> str:
        return self._classified.schema.uid

    @property
    def level_uid(self) -> str:
        return self._classified.state.level.uid

    @property
    def schema(self) -> str:
        return self._classified.schema.name

    @property
    def level(self) -> str:
        return self._classified.state.level.name

    async def wait(self, seconds_max: float = math.inf) -> None:
        """Wait until the request is admitted.

        Raises: StatusError 429 when it is not admitted in time.
        """
        await self._control.wait(self, seconds_max)

    def leave(self) -> None:
        """End the request, or the limited part of it: for a watch its initialization."""
        if self._gone:
            return
        self._gone = True
        if self.admitted:
            self._control.left(self._classified, self._request, self._seats, self._started)
        elif self._request is not None:
            self._control.gave_up(self, "cancelled")

    # For the controller.

    def _begin(self, now: float) -> None:
        self.admitted = True
        self._started = now

    def wake(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)


class TooManyRequests(StatusError):
    """The 429 of a request without a seat and without a place in a queue."""

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__(
            429,
            "TooManyRequests",
            TOO_MANY,
            details=meta.StatusDetails(),
            retry_after_seconds=retry_after_seconds,
        )


class FlowControl:
    """All priority levels of a server.

    `stored_of` returns the number and size of a resource's stored objects, for the width of lists.
    """

    def __init__(self, clock: Clock, limits: Limits | None = None) -> None:
        self._clock = clock
        self.limits = limits or Limits()
        self.stored_of: Callable[[str, str], Stored] | None = None
        self.levels: dict[str, LevelState] = {}
        self._schemas: tuple[Schema, ...] = ()
        self._configuration = Configuration((), {})
        self._classifications: FIFOCache[_Key, _Classification] = FIFOCache(_KNOWN_MAX)
        # Requests in progress or waiting, by whether they only read.
        self.in_flight = {True: 0, False: 0}
        self.in_queue = {True: 0, False: 0}
        self.dropped = {True: 0, False: 0}
        # In force until the stored objects are read.
        self.configure(bootstrap.suggested_schemas(), bootstrap.suggested_levels())

    # Configuration.

    def configure(
        self,
        schemas: Iterable[flowcontrol.FlowSchema],
        levels: Iterable[flowcontrol.PriorityLevelConfiguration],
    ) -> None:
        """Put the stored objects into force; the mandatory ones are always included."""
        found_levels = {each.metadata.name: each for each in levels}
        found_schemas = {each.metadata.name: each for each in schemas}
        for level in bootstrap.mandatory_levels():
            stored = found_levels.get(level.metadata.name)
            if stored is not None:
                level.metadata.uid = stored.metadata.uid
                if stored.spec.type == level.spec.type and stored.spec.HasField("exempt"):
                    level.spec.exempt.CopyFrom(stored.spec.exempt)
            found_levels[level.metadata.name] = level
        for schema in bootstrap.mandatory_schemas():
            if schema.metadata.name in found_schemas:
                schema.metadata.uid = found_schemas[schema.metadata.name].metadata.uid
            found_schemas[schema.metadata.name] = schema
        self._take(
            Configuration.of(map(schema_of, found_schemas.values()), map(level_of, found_levels.values()))
        )

    def _take(self, configuration: Configuration) -> None:
        now = self._clock.monotonic()
        self._classifications = FIFOCache(_KNOWN_MAX)
        self._configuration = configuration
        bounded = borrowing.bounds(configuration.levels, self.limits.seats)
        states: dict[str, LevelState] = {}
        for name, level in configuration.levels.items():
            before = self.levels.get(name)
            if before is None or before.level.queuing != level.queuing or before.exempt != level.exempt:
                # Requests in the old queues are served from there with the old seats.
                states[name] = LevelState(level, bounded[name], now)
                if before is not None:
                    states[name].counts = before.counts
                continue
            before.level, before.bounds = level, bounded[name]
            before.most_seats = seats_rules.seats_max(bounded[name].nominal)
            states[name] = before
            if not level.exempt:
                self._begun(before.queues.set_limit(bounded[name].nominal, now), now)
        self.levels = states

    async def rebalance(self) -> None:
        """Lend idle seats, every ten seconds, until cancelled."""
        while True:
            await self._clock.sleep(borrowing.ADJUST_SECONDS)
            self.lend()

    def lend(self) -> None:
        """Divide the seats again by the demand since the last time."""
        now = self._clock.monotonic()
        demands = {}
        for name, state in self.levels.items():
            mean, deviation, highest = state.queues.demand.take(now)
            state.smoothed = borrowing.smooth(state.smoothed, mean, deviation)
            demands[name] = (state.smoothed, highest)
        levels = {name: state.level for name, state in self.levels.items()}
        bounded = {name: state.bounds for name, state in self.levels.items()}
        for name, limit in borrowing.current_limits(levels, bounded, demands).items():
            state = self.levels[name]
            if state.queues.limit != limit:
                self._begun(state.queues.set_limit(limit, now), now)

    # Requests.

    def arrive(self, user: User, asked: Attributes, seats_of: Callable[[int], int] | None = None) -> Ticket:
        """Classify a request and let it wait or take a seat.

        `seats_of` returns its width, given the largest allowed width; without it the request takes one seat.
        """
        # Without the name: there are many made-up names, and all are classified alike.
        verb, resource, group, _, subresource, namespace, _, path, _, _ = asked
        key = (user.name, user.groups, verb, group, resource, subresource, namespace, path)
        try:
            classified = self._classifications[key]
        except KeyError:
            classified = self._find(key, user, asked)
        state = classified.state
        now = self._clock.monotonic()
        seats = 1 if seats_of is None else seats_of(state.most_seats)
        ticket = Ticket(self, classified, seats, now)
        if state.exempt:
            self._admit(ticket, classified, seats, now)
            state.queues.demand.change(seats, now)
            return ticket
        if not self.limits.fair:
            limit = self.limits.reading if classified.reads else self.limits.mutating
            if not limit or self.in_flight[classified.reads] < limit:
                self._admit(ticket, classified, seats, now)
            return ticket
        request = state.queues.arrive(classified.hand, seats, now)
        if request is None:
            return ticket
        ticket._request = request
        if request.executing:
            self._admit(ticket, classified, seats, now)
            return ticket
        request.context = ticket
        self._queue(classified, 1, seats)
        assert request.queue is not None
        classified.counts.lengths.observe(len(request.queue.waiting))
        self._begun(state.queues.dispatch(now), now)
        return ticket

    def _queue(self, classified: _Classification, change: int, seats: int) -> None:
        classified.counts.in_queue += change
        classified.counts.seats_in_queue += change * seats
        self.in_queue[classified.reads] += change

    def list_seats(
        self, asked: Attributes, *, limit: int, from_cache: bool, selects: bool
    ) -> Callable[[int], int] | None:
        """Return the width function of a list for `arrive`, also of a watch that begins with a list."""
        stored_of = self.stored_of
        if stored_of is None:
            return None
        return lambda most: seats_rules.of_list(
            stored_of(asked.group, asked.resource),
            limit=limit,
            from_cache=from_cache,
            selects=selects,
            most=most,
        )

    def _find(self, key: _Key, user: User, asked: Attributes) -> _Classification:
        schema = self._configuration.classify(user, asked)
        state = self.levels[schema.level]
        cards: tuple[int, ...] = ()
        queuing = state.queues.queuing
        if queuing is not None:
            entropy = flow_hash(schema.name, schema.flow(user, asked))
            cards = hand(entropy, queuing.queues, queuing.hand_size)
        classified = self._classifications[key] = _Classification(schema, state, cards, asked)
        return classified

    def _admit(self, ticket: Ticket, classified: _Classification, seats: int, now: float) -> None:
        ticket._begin(now)
        counts = classified.counts
        counts.dispatched += 1
        counts.executing += 1
        counts.seats += seats
        counts.seats_asked.observe(seats)
        self.in_flight[classified.reads] += 1

    def left(self, classified: _Classification, request: Request | None, seats: int, started: float) -> None:
        """Finish an admitted request, and start those that may use its seats."""
        now = self._clock.monotonic()
        counts = classified.counts
        counts.executing -= 1
        counts.seats -= seats
        (counts.watched if classified.watch else counts.ran).observe(now - started)
        self.in_flight[classified.reads] -= 1
        queues = classified.state.queues
        if request is not None:
            begun = queues.finish(request, now)
            if begun:
                self._begun(begun, now)
        elif classified.state.exempt:
            queues.demand.change(-seats, now)

    def _begun(self, requests: Sequence[Request], now: float) -> None:
        """Admit waiting requests whose turn it is."""
        for request in requests:
            ticket = request.context
            assert isinstance(ticket, Ticket)
            classified = ticket._classified
            self._queue(classified, -1, request.seats)
            classified.counts.waited.observe(now - ticket._started)
            self._admit(ticket, classified, request.seats, now)
            ticket.wake()

    async def wait(self, ticket: Ticket, seconds_max: float) -> None:
        """Wait until a ticket is admitted; see `Ticket.wait`."""
        if ticket.admitted:
            return
        if ticket._request is None:
            queued = self.limits.fair and ticket._classified.state.queues.queuing is not None
            raise self._refused(ticket, "queue-full" if queued else "concurrency-limit")
        ticket._future = asyncio.get_running_loop().create_future()
        with anyio.move_on_after(min(self.limits.wait_seconds, seconds_max)):
            await ticket._future
        if not ticket.admitted:
            self.gave_up(ticket, "time-out")
            raise self._refused(ticket)

    def gave_up(self, ticket: Ticket, reason: str) -> None:
        """Remove a waiting request from its queue."""
        now = self._clock.monotonic()
        request, classified = ticket._request, ticket._classified
        assert request is not None
        ticket._request = None
        self._queue(classified, -1, request.seats)
        classified.counts.waited_in_vain.observe(now - ticket._started)
        classified.counts.refuse(reason)
        self._begun(classified.state.queues.give_up(request, now), now)

    def _refused(self, ticket: Ticket, reason: str = "") -> TooManyRequests:
        state, classified = ticket._classified.state, ticket._classified
        state.retry_after.refused(self._clock.monotonic())
        if reason:
            classified.counts.refuse(reason)
        self.dropped[classified.reads] += 1
        ticket._gone = True
        return TooManyRequests(state.retry_after.seconds)


__all__ = ["TOO_MANY", "FlowControl", "Limits", "Ticket", "TooManyRequests", "User"]
