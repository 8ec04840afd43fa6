"""How fast nodes that are not ready are tainted with NoExecute, by the state of their zones. Pure.

Where most nodes of a zone are not ready, the fault may be the control plane's: fewer nodes are tainted or,
where none is ready in any zone, none (master disruption mode).

Source: kube-controller-manager 1.36, pkg/controller/nodelifecycle (handleDisruption, ComputeZoneState,
setLimiterInZone) and its RateLimitedTimedQueue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from nominee.machinery.api.pb import core
from nominee.machinery.api.zones import Zone, zone_of
from nominee.machinery.runtime.queues.token_bucket import TokenBucket

EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
"""The label of nodes that do not count for the state of their zone."""
_BURST: Final = 1
_UNREADY_MIN: Final = 3
"""So many nodes of a zone must be not ready before it counts as disrupted in part."""


class ZoneState(Enum):
    """The health of a zone, by how many of its nodes are ready."""

    INITIAL = auto()
    NORMAL = auto()
    PARTIAL = auto()
    FULL = auto()


class Change(Enum):
    """A change for the whole cluster that a look at all zones shows."""

    NONE = auto()
    STOPPED = auto()
    """None of the nodes that count is ready any more: no taint NoExecute comes, and those there are go."""
    RESUMED = auto()
    """A node is ready again: the time of all of them begins again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The numbers of nodes of a zone that are tainted per second, and the limits from which on fewer are."""

    normal: float = 0.1
    secondary: float = 0.01
    unhealthy_threshold: float = 0.55
    large_size_threshold: int = 50

    def state_of(self, ready: Sequence[bool]) -> ZoneState:
        """Return the state of a zone from whether each of its nodes is ready."""
        unready = len(ready) - sum(ready)
        if ready and unready == len(ready):
            return ZoneState.FULL
        if unready >= _UNREADY_MIN and unready / len(ready) >= self.unhealthy_threshold:
            return ZoneState.PARTIAL
        return ZoneState.NORMAL

    def of(self, state: ZoneState, size: int) -> float:
        """Return the rate for a zone of so many nodes."""
        if state is not ZoneState.PARTIAL:
            return self.normal
        return self.secondary if size > self.large_size_threshold else 0.0


class TaintQueue:
    """The nodes of a zone that are to be tainted, in order, and when the next one may be.

    A node stays known when it has been taken, so that it is not tainted again, until it is removed.
    """

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._bucket = TokenBucket(rate, _BURST, now) if rate > 0 else None
        self._taken_at = now - 1 / rate if rate > 0 else now
        self._waiting: dict[str, None] = {}
        self._known: set[str] = set()

    def add(self, name: str) -> None:
        if name not in self._known:
            self._known.add(name)
            self._waiting[name] = None

    def remove(self, name: str) -> None:
        self._known.discard(name)
        self._waiting.pop(name, None)

    def retry(self, name: str) -> None:
        """Queue a node again that was taken, and not removed meanwhile."""
        if name in self._known:
            self._waiting[name] = None

    def set_rate(self, rate: float, now: float) -> None:
        """Change the rate; a queue that must wait begins to wait again (SwapLimiter)."""
        if rate == self._rate:
            return
        has_token = self._bucket is not None and self._bucket.try_take(now)
        self._rate = rate
        self._bucket = TokenBucket(rate, _BURST, now) if rate > 0 else None
        if self._bucket is not None and not has_token:
            self._bucket.try_take(now)
            self._taken_at = now

    def take(self, now: float) -> str | None:
        """Return the next node to taint, None for none now."""
        if not self._waiting or self._bucket is None or not self._bucket.try_take(now):
            return None
        self._taken_at = now
        name = next(iter(self._waiting))
        del self._waiting[name]
        return name

    def seconds_left(self, now: float) -> float | None:
        """Return until when the next node must wait, None where none does or none may be tainted."""
        if not self._waiting or self._rate <= 0:
            return None
        return max(self._taken_at + 1 / self._rate - now, 0.0)


class Zones:
    """The states and queues of all zones."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._states: dict[Zone, ZoneState] = {}
        self._queues: dict[Zone, TaintQueue] = {}
        self._ready: dict[Zone, list[bool]] = {}  # of this pass

    def begin(self, nodes: Iterable[core.Node], now: float) -> None:
        """Begin a pass over these nodes: a zone without a state gets a new queue."""
        present = dict.fromkeys(zone_of(node) for node in nodes)
        self._queues = {zone: queue for zone, queue in self._queues.items() if zone in present}
        for zone in present:
            if zone not in self._states:
                self._states[zone] = ZoneState.INITIAL
                self._queues[zone] = TaintQueue(self._rates.normal, now)
        self._ready = {}

    def count(self, node: core.Node, is_ready: bool) -> None:
        """Count a node of this pass for its zone."""
        if EXCLUDED not in node.metadata.labels:
            self._ready.setdefault(zone_of(node), []).append(is_ready)

    def judge(self, now: float) -> Change:
        """End the pass: set the states and rates of the zones of which a node was counted; forget others."""
        new = {zone: self._rates.state_of(each) for zone, each in self._ready.items()}
        old = {zone: self._states.get(zone, ZoneState.INITIAL) for zone in new}
        self._states = new
        is_stopped = all(state is ZoneState.FULL for state in new.values())
        was_stopped = all(state is ZoneState.FULL for state in old.values())
        if is_stopped and was_stopped:
            return Change.NONE
        for zone, state in new.items():
            if is_stopped:
                self._set_rate(zone, 0.0, now)
            elif was_stopped or state is not old[zone]:
                self._set_rate(zone, self._rates.of(state, len(self._ready[zone])), now)
        if is_stopped:
            return Change.STOPPED
        return Change.RESUMED if was_stopped else Change.NONE

    def _set_rate(self, zone: Zone, rate: float, now: float) -> None:
        if zone in self._queues:
            self._queues[zone].set_rate(rate, now)

    def queue_of(self, zone: Zone) -> TaintQueue | None:
        """Return the queue of a zone, None for one that had no node when the pass began."""
        return self._queues.get(zone)

    def forget(self, name: str) -> None:
        """Remove a node from all queues."""
        for queue in self._queues.values():
            queue.remove(name)
