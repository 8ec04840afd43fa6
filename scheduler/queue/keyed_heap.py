"""Keep items in a heap and find, replace and remove them by key."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

_COMPACT_MIN = 64  # dead entries below this number are not worth a rebuild


class KeyedHeap(Generic[K, T]):
    """Items in the order of `sort_key`; equal ones in the order in which they came.

    Removal leaves a dead entry in the heap, dropped when it surfaces or when dead ones outnumber the living.
    """

    def __init__(self, sort_key: Callable[[T], Any]) -> None:
        self._sort_key = sort_key
        self._order = itertools.count()
        self._heap: list[list[Any]] = []  # [sort key, order, serial, key, item]; item None: dead
        self._entries: dict[K, list[Any]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def get(self, key: K) -> T | None:
        entry = self._entries.get(key)
        return None if entry is None else entry[4]

    def put(self, key: K, item: T) -> None:
        """Add the item, or replace the one of that key; a replaced one keeps its place among equals."""
        old = self._entries.get(key)
        sort_key = self._sort_key(item)
        if old is not None and old[0] == sort_key:
            old[4] = item
            return
        order = next(self._order)
        if old is not None:
            order = old[1]
            old[4] = None
        # The serial keeps a dead entry and its successor from being compared further.
        entry = [sort_key, order, next(self._order), key, item]
        self._entries[key] = entry
        heapq.heappush(self._heap, entry)
        self._compact()

    def remove(self, key: K) -> T | None:
        """Remove and return the item of that key, or None."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        item: T = entry[4]
        entry[4] = None
        self._compact()
        return item

    def peek(self) -> T | None:
        """Return the first item, or None."""
        while self._heap and self._heap[0][4] is None:
            heapq.heappop(self._heap)
        return self._heap[0][4] if self._heap else None

    def pop(self) -> T | None:
        """Remove and return the first item; None when empty."""
        if self.peek() is None:
            return None
        entry = heapq.heappop(self._heap)
        del self._entries[entry[3]]
        item: T = entry[4]
        return item

    def __iter__(self) -> Iterator[T]:
        """Yield the items in the order in which they would be popped."""
        for entry in sorted(self._entries.values(), key=lambda entry: entry[:2]):
            yield entry[4]

    def _compact(self) -> None:
        if len(self._heap) > 2 * len(self._entries) + _COMPACT_MIN:
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)
