"""The objects of one kind in the watch cache: the current state, and a window of past events. Pure."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.watcher import EventType, Watcher, WatchEvent
from nominee.machinery.api.kinds import AnyKind

Predicate = Callable[[CachedObject], bool]
Convert = Callable[[CachedObject], CachedObject]


class Transition:
    """A change of one object from `previous` to `current`; one of the two may be None.

    For a watcher with a selector, an object that enters or leaves the selection is ADDED or DELETED. Each
    event is made once and shared.
    """

    __slots__ = ("_views", "current", "previous", "revision")

    def __init__(self, previous: CachedObject | None, current: CachedObject | None, revision: int) -> None:
        self.previous = previous
        self.current = current
        self.revision = revision
        self._views: dict[tuple[EventType, Convert | None], WatchEvent] | None = None

    @property
    def namespace(self) -> str:
        present = self.current or self.previous
        return present.namespace if present is not None else ""

    def _view(self, event_type: EventType, convert: Convert | None) -> WatchEvent:
        if self._views is None:
            self._views = {}
        view = self._views.get((event_type, convert))
        if view is None:
            if event_type is EventType.DELETED:
                assert self.previous is not None
                shown = self.previous.at_revision(self.revision)
            else:
                assert self.current is not None
                shown = self.current
            view = WatchEvent(event_type, shown.converted(convert) if convert else shown)
            self._views[event_type, convert] = view
        return view

    def event(self, predicate: Predicate | None, convert: Convert | None = None) -> WatchEvent | None:
        """Return the event that a watcher with this predicate gets, or None."""
        before = self.previous is not None and (predicate is None or predicate(self.previous))
        now = self.current is not None and (predicate is None or predicate(self.current))
        if now:
            return self._view(EventType.MODIFIED if before else EventType.ADDED, convert)
        return self._view(EventType.DELETED, convert) if before else None

    def slim(self) -> None:
        """Drop the cached views, which the window of past events does not need."""
        self._views = None


@dataclass(slots=True)
class Subscription:
    """A watcher and its filter: `namespace` "" is all; times are seconds of the monotonic clock."""

    watcher: Watcher
    namespace: str
    predicate: Predicate | None
    convert: Convert | None
    # Events up to this revision are not for this watcher: it started after them.
    after_revision: int
    bookmarks: bool
    next_bookmark: float
    deadline: float


class KindCache:
    """All objects of a kind by their key below the kind's prefix (`ns/name` or `name`), in etcd's order."""

    __slots__ = (
        "_history",
        "_history_max",
        "_keys",
        "_objects",
        "kind",
        "last_change",
        "oldest",
        "subscriptions",
    )

    def __init__(self, kind: AnyKind, *, history_max: int) -> None:
        self.kind = kind
        self._objects: dict[str, CachedObject] = {}
        self._keys: list[str] = []
        self._history: deque[Transition] = deque()
        self._history_max = history_max
        self.subscriptions: list[Subscription] = []
        # Every change after this revision is in the window.
        self.oldest = 0
        # The revision of the newest change (or of the first list): later revisions have the same state.
        self.last_change = 0

    def __len__(self) -> int:
        return len(self._objects)

    def replace(self, objects: Iterable[tuple[str, CachedObject]], revision: int) -> None:
        """Replace the state by `objects` at `revision`, without past events."""
        self._objects = dict(objects)
        self._keys = sorted(self._objects)
        self._history.clear()
        self.oldest = self.last_change = revision

    def get(self, key: str) -> CachedObject | None:
        return self._objects.get(key)

    def apply(self, key: str, current: CachedObject | None, revision: int) -> Transition | None:
        """Apply a change and return it; None when a deleted key did not exist."""
        previous = self._objects.get(key)
        if current is not None:
            self._objects[key] = current
            if previous is None:
                insort(self._keys, key)
        else:
            if previous is None:
                return None
            del self._objects[key]
            del self._keys[bisect_left(self._keys, key)]
        transition = Transition(previous, current, revision)
        self.last_change = revision
        self._history.append(transition)
        if len(self._history) > self._history_max:
            self.oldest = self._history.popleft().revision
        return transition

    def in_order(self, namespace: str = "", start: str = "") -> Iterator[CachedObject]:
        """Yield objects in key order from the key `start` on (inclusive, below the namespace's prefix)."""
        keys, prefix = self._keys, f"{namespace}/" if namespace else ""
        for index in range(bisect_left(keys, prefix + start), len(keys)):
            key = keys[index]
            if not key.startswith(prefix):
                return
            yield self._objects[key]

    def count(self, namespace: str = "", start: str = "") -> int:
        """Return the number of objects that `in_order` would yield."""
        prefix = f"{namespace}/" if namespace else ""
        # "0" is the character after "/": the first key behind the namespace's.
        end = bisect_left(self._keys, f"{namespace}0") if namespace else len(self._keys)
        return max(0, end - bisect_left(self._keys, prefix + start))

    def since(self, revision: int) -> Iterator[Transition]:
        """Return the changes after `revision`, which must not be before `oldest`."""
        newer: list[Transition] = []
        for transition in reversed(self._history):
            if transition.revision <= revision:
                break
            newer.append(transition)
        return reversed(newer)
