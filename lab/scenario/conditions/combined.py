"""`all` and `any`: conditions of which all hold at the same time, or one."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf(Combination):
    """Conditions of which one must hold."""

    key: ClassVar[str] = "any"
    row: ClassVar[str] = "a list of conditions of which one holds"
    how: ClassVar[Callable[[Iterable[bool]], bool]] = any
    word: ClassVar[str] = "or"
