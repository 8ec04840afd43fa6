"""Cache the result of a rule for a message, for rules that cost more than to serialize the message.

Pods are made from templates: thousands have the same spec, byte for byte. A rule that depends on the message
alone runs once for all of them; one that fills in defaults is replaced by a copy of its result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from cachetools import FIFOCache
from google.protobuf.message import Message

M = TypeVar("M", bound=Message)
T = TypeVar("T")

ENTRIES_MAX = 256
"""Messages cached per rule; the one cached first is dropped first, which makes a hit cheapest."""
BYTES_MAX = 16 << 10
"""A larger message is not cached: 256 of them would fill the memory."""
ITEMS_MAX = 16
"""A longer result is not cached either: in a small message thousands of parts can be wrong."""
RESULT_BYTES_MAX = 4 * BYTES_MAX
"""Nor is a message that has become larger by its change."""


class CachedRule(Generic[M, T]):
    """A function of a message alone, which it does not change; the result is shared: never change it."""

    __slots__ = ("_results", "_rule")

    def __init__(self, rule: Callable[[M], T]) -> None:
        self._rule = rule
        self._results: FIFOCache[bytes, T] = FIFOCache(ENTRIES_MAX)

    def __call__(self, message: M) -> T:
        """Return the rule's result, from the cache where the same bytes came before."""
        key = message.SerializeToString()
        try:
            return self._results[key]
        except KeyError:
            result = self._rule(message)
        if len(key) <= BYTES_MAX and not (isinstance(result, list | tuple) and len(result) > ITEMS_MAX):
            self._results[key] = result
        return result

    def clear(self) -> None:
        """Drop all cached results."""
        self._results.clear()


class CachedChange(Generic[M]):
    """A change of a message in place that depends on the message alone."""

    __slots__ = ("_change", "_results")

    def __init__(self, change: Callable[[M], None]) -> None:
        self._change = change
        self._results: FIFOCache[bytes, M] = FIFOCache(ENTRIES_MAX)

    def __call__(self, message: M) -> None:
        """Change the message, by a copy of the cached result where the same bytes came before."""
        key = message.SerializeToString()
        try:
            result = self._results[key]
        except KeyError:
            self._change_and_cache(key, message)
        else:
            message.CopyFrom(result)

    def _change_and_cache(self, key: bytes, message: M) -> None:
        self._change(message)
        if len(key) <= BYTES_MAX and message.ByteSize() <= RESULT_BYTES_MAX:
            self._results[key] = result = type(message)()
            result.CopyFrom(message)
