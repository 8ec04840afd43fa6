"""`all`: conditions that hold at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from nominee.lab.scenario.observing.base import Combination


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf(Combination):
    """Conditions that must all hold at the same time."""

    key: ClassVar[str] = "all"
    row: ClassVar[str] = "a list of conditions that hold at the same time"
    how: ClassVar[Callable[[Iterable[bool]], bool]] = all
    word: ClassVar[str] = "and"
