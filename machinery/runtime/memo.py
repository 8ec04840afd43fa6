"""What was found out about a message before: for rules that cost much more than a look at its bytes.

Pods are made from templates: thousands have the same spec, byte for byte. A rule that looks at nothing but
the message need not be asked again, and one that fills in gets what it made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from google.protobuf.message import Message

M = TypeVar("M", bound=Message)
T = TypeVar("T")

ENTRIES_MAX = 256
"""Messages that one rule remembers; when there are more it forgets them all, which is cheap and fair."""
BYTES_MAX = 16 << 10
"""A larger message is not remembered: 256 of them would fill the memory."""
ITEMS_MAX = 16
"""A longer result is not remembered either: in a small message thousands of parts can be wrong."""
MADE_BYTES_MAX = 4 * BYTES_MAX
"""Nor is a message that has become larger by its change."""


class Verdicts(Generic[M, T]):
    """A function of a message alone, which it does not change; the result is shared: never change it."""

    __slots__ = ("_known", "_rule")

    def __init__(self, rule: Callable[[M], T]) -> None:
        self._rule = rule
        self._known: dict[bytes, T] = {}

    def __call__(self, message: M) -> T:
        key = message.SerializeToString()
        known = self._known
        if key in known:
            return known[key]
        found = self._rule(message)
        if len(key) <= BYTES_MAX and not (isinstance(found, list | tuple) and len(found) > ITEMS_MAX):
            if len(known) >= ENTRIES_MAX:
                known.clear()
            known[key] = found
        return found


class Changes(Generic[M]):
    """A change of a message in place that depends on the message alone."""

    __slots__ = ("_known", "_rule")

    def __init__(self, rule: Callable[[M], None]) -> None:
        self._rule = rule
        self._known: dict[bytes, M] = {}

    def __call__(self, message: M) -> None:
        key = message.SerializeToString()
        known = self._known
        made = known.get(key)
        if made is not None:
            message.CopyFrom(made)
            return
        self._rule(message)
        if len(key) <= BYTES_MAX and message.ByteSize() <= MADE_BYTES_MAX:
            if len(known) >= ENTRIES_MAX:
                known.clear()
            known[key] = kept = type(message)()
            kept.CopyFrom(message)
