"""The generations of an object that its component may still read from a stale cache."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def drop_read(versions: dict[int, T], observed: int) -> None:
    """Drop the versions of generations that are older than the one that a status says was read.

    The newest one stays: a status may say too much, as one that a user wrote, or of a former object.
    """
    oldest = min(observed, max(versions, default=0))
    for generation in [each for each in versions if each < oldest]:
        del versions[generation]
