"""Fair queuing of one priority level's requests: a pure core, times in seconds are arguments.

Requests occupy seats while they execute. Those without a seat wait in one of several queues. The next request
comes from the queue whose oldest request would finish first in a virtual world, in which all queues are
served at once and evenly. R is that world's clock: the seat-seconds of service that each queue was due.

Source: KEP-1040 ("Fair Queuing for Server Requests"); kube-apiserver 1.36, util/flowcontrol/fairqueuing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from nominee.apiserver.flow_control.configuration import Queuing

SERVICE_SECONDS = 0.003
"""The assumed duration of a request, until it is known."""
_NONE: tuple[Request, ...] = ()


class _Queue:
    __slots__ = ("executing", "index", "next_r", "seats", "waiting", "waiting_seats")

    def __init__(self, index: int) -> None:
        self.index = index
        # Only the ends are used, except when a request gives up.
        self.waiting: deque[Request] = deque()
        self.waiting_seats = 0
        self.executing = 0
        self.seats = 0
        # R at which the oldest waiting request starts in the virtual world.
        self.next_r = 0.0


class Request:
    """One request of a level: it waits, executes (`executing`), and finishes."""

    __slots__ = ("arrived_r", "context", "executing", "queue", "seats", "started")

    def __init__(self, seats: int, queue: _Queue | None, arrived_r: float, started: float) -> None:
        self.seats = seats
        self.queue = queue
        self.arrived_r = arrived_r
        self.started = started
        self.executing = False
        # The caller's data.
        self.context: object = None


class Demand:
    """Mean and standard deviation over time of the demanded seats."""

    __slots__ = ("_area", "_begun", "_last", "_squares", "highest", "value")

    def __init__(self, now: float) -> None:
        self.value = 0
        self._restart(now)

    def _restart(self, now: float) -> None:
        self._begun = self._last = now
        self._area = self._squares = 0.0
        self.highest = self.value

    def change(self, by: int, now: float) -> None:
        """Add `by` seats to the demand at `now`."""
        spent = now - self._last
        self._last = now
        self._area += self.value * spent
        self._squares += self.value * self.value * spent
        self.value += by
        if self.value > self.highest:
            self.highest = self.value

    def take(self, now: float) -> tuple[float, float, int]:
        """Return (mean, standard deviation, highest) since the last call, and start again."""
        self.change(0, now)
        spent = now - self._begun
        if spent <= 0:
            return 0.0, 0.0, self.highest
        mean = self._area / spent
        found = mean, max(self._squares / spent - mean * mean, 0.0) ** 0.5, self.highest
        self._restart(now)
        return found


class QueueSet:
    """The queues of one level; see the module. `limit` is the number of seats."""

    def __init__(self, queuing: Queuing | None, limit: int, now: float) -> None:
        self.queuing = queuing
        self.limit = limit
        self.waiting = 0
        self.executing = 0
        self.seats = 0
        self.waiting_seats = 0
        self.demand = Demand(now)
        self._queues = [_Queue(index) for index in range(queuing.queues)] if queuing else []
        self._active = 0
        self._r = 0.0
        self._last = now
        self._turn = 0
        self._robin = 0

    def arrive(self, hand: Sequence[int], seats: int, now: float) -> Request | None:
        """Return a request that executes or waits, or None when there is room for neither.

        `hand` are the queues that its flow may use; it is ignored without queues. After a request that waits,
        call `dispatch`: the next request may need fewer seats than those before it.
        """
        if self.queuing is None:
            if not self._fits(seats):
                return None
            request = Request(seats, None, 0.0, now)
            self._begin(request, now)
            self.demand.change(seats, now)
            return request
        self._advance(now)
        queue = self._choose(hand)
        if self.seats >= self.limit and len(queue.waiting) >= self.queuing.queue_length_limit:
            return None
        request = Request(seats, queue, self._r, now)
        if not queue.waiting and not queue.executing:
            queue.next_r = self._r
            self._active += 1
        self.demand.change(seats, now)
        if not self.waiting and self.seats < self.limit and self._fits(seats):
            # No other request waits: this one would be the next anyway.
            self._robin = queue.index
            self._dispatch(request, queue, now)
            return request
        queue.waiting.append(request)
        queue.waiting_seats += seats
        self.waiting += 1
        self.waiting_seats += seats
        _bound(queue)
        return request

    def finish(self, request: Request, now: float) -> Sequence[Request]:
        """Finish a request; return those that execute now instead."""
        self._advance(now)
        seats = request.seats
        request.executing = False
        self.executing -= 1
        self.seats -= seats
        self.demand.change(-seats, now)
        queue = request.queue
        if queue is not None:
            queue.executing -= 1
            queue.seats -= seats
            # It was charged with the assumed duration.
            queue.next_r += seats * (now - request.started - SERVICE_SECONDS)
            if queue.waiting:
                _bound(queue)
            elif not queue.executing:
                self._active -= 1
        return self.dispatch(now) if self.waiting else _NONE

    def give_up(self, request: Request, now: float) -> Sequence[Request]:
        """Remove a waiting request; return those that it had blocked and that execute now."""
        queue = request.queue
        assert queue is not None
        assert not request.executing
        self._advance(now)
        queue.waiting.remove(request)
        queue.waiting_seats -= request.seats
        self.waiting -= 1
        self.waiting_seats -= request.seats
        self.demand.change(-request.seats, now)
        _bound(queue)
        if not queue.waiting and not queue.executing:
            self._active -= 1
        return self.dispatch(now) if self.waiting else _NONE

    def set_limit(self, limit: int, now: float) -> Sequence[Request]:
        """Set the number of seats; return the requests that execute now."""
        self._advance(now)
        self.limit = limit
        return self.dispatch(now)

    def dispatch(self, now: float) -> Sequence[Request]:
        """Start as many waiting requests as there are seats for, and return them."""
        begun: list[Request] = []
        while self.waiting and self.seats < self.limit:
            request = self._next()
            if request is None:
                break
            queue = request.queue
            assert queue is not None
            queue.waiting.popleft()
            queue.waiting_seats -= request.seats
            self.waiting -= 1
            self.waiting_seats -= request.seats
            self._robin = queue.index
            request.started = now
            self._dispatch(request, queue, now)
            _bound(queue)
            begun.append(request)
        return begun

    def _fits(self, seats: int) -> bool:
        """Report whether the seats are free; a request wider than the limit may have all seats alone."""
        return not self.executing if seats > self.limit else self.seats + seats <= self.limit

    def _begin(self, request: Request, now: float) -> None:
        request.executing = True
        self.executing += 1
        self.seats += request.seats

    def _dispatch(self, request: Request, queue: _Queue, now: float) -> None:
        self._begin(request, now)
        queue.executing += 1
        queue.seats += request.seats
        queue.next_r += request.seats * SERVICE_SECONDS

    def _advance(self, now: float) -> None:
        """Advance R by the service since the last change."""
        if self._active:
            wanted = min(self.seats + self.waiting_seats, self.limit)
            self._r += wanted / self._active * (now - self._last)
        self._last = now

    def _choose(self, hand: Sequence[int]) -> _Queue:
        """Return the queue of the hand with the least waiting work, starting at another card each time."""
        size = len(hand)
        self._turn = turn = (self._turn + 1) % size
        best = self._queues[hand[turn]]
        if self.waiting:
            for offset in range(1, size):
                queue = self._queues[hand[(turn + offset) % size]]
                if queue.waiting_seats < best.waiting_seats:
                    best = queue
        return best

    def _next(self) -> Request | None:
        """Return the request that finishes first in the virtual world, if there are seats for it."""
        count = len(self._queues)
        best: Request | None = None
        ends = 0.0
        for offset in range(1, count + 1):
            queue = self._queues[(self._robin + offset) % count]
            if queue.waiting:
                oldest = queue.waiting[0]
                end = queue.next_r + oldest.seats * SERVICE_SECONDS
                if best is None or end < ends:
                    best, ends = oldest, end
        return best if best is not None and self._fits(best.seats) else None


def _bound(queue: _Queue) -> None:
    """Keep the start of a request from preceding its arrival."""
    if queue.waiting and queue.next_r < queue.waiting[0].arrived_r:
        queue.next_r = queue.waiting[0].arrived_r
