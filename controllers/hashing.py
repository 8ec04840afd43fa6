"""Hashes in the names of replica sets and controller revisions. Pure.

Source: Go's hash/fnv; apimachinery 1.36, pkg/util/rand (SafeEncodeString).
"""

from __future__ import annotations

from typing import Final

_SAFE: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels and what looks like them: a hash shall not spell a word."""
_OFFSET: Final = 0x811C9DC5
_PRIME: Final = 0x01000193


def _safe(number: int) -> str:
    return "".join(_SAFE[ord(digit) % len(_SAFE)] for digit in str(number))


def fnv1(data: bytes) -> str:
    """Return FNV-1 of the data, 32 bits, in safe letters."""
    value = _OFFSET
    for byte in data:
        value = value * _PRIME & 0xFFFFFFFF ^ byte
    return _safe(value)


def fnv1a(data: bytes) -> str:
    """Return FNV-1a of the data, 32 bits, in safe letters."""
    value = _OFFSET
    for byte in data:
        value = (value ^ byte) * _PRIME & 0xFFFFFFFF
    return _safe(value)
