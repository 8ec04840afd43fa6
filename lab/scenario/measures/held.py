"""`held`: how long a condition held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from google.protobuf.message import Message

from nominee.lab.scenario.fields.fragments import CONDITION, Fragment
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.measures.base import Measure, Recorder, concerns, observable
from nominee.lab.scenario.observing.base import Condition, ConditionParser, Objects
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.wire.values.scalars import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(Measure):
    """The seconds of the run for which a condition held, all times together."""

    key: ClassVar[str] = "held"
    row: ClassVar[str] = "the seconds for which a condition held, all times together"

    condition: Condition

    @classmethod
    def schema(cls) -> Fragment:
        return CONDITION

    @classmethod
    def parse(cls, parser: ConditionParser, path: FieldPath, value: Json) -> Measure:
        """Return the measure of the time for which a condition held."""
        return cls(condition=observable(parser, path, value))

    @property
    def conditions(self) -> Sequence[Condition]:
        """Return the condition."""
        return (self.condition,)

    def recorder(self, objects: Objects) -> Recorder:
        """Return a recorder of the time."""
        return _Stopwatch(self.condition, objects)


class _Stopwatch(Recorder):
    """Adds up the times for which a condition held."""

    def __init__(self, condition: Condition, objects: Objects) -> None:
        self._condition, self._objects = condition, objects
        self._since: float | None = None
        self._seconds = 0.0

    def on_change(self, kind: AnyKind, obj: Message, now: float) -> None:
        """Start or stop, if the condition changes."""
        if not concerns(self._condition, kind, obj):
            return
        holds = self._condition.evaluate(self._objects).holds
        if holds and self._since is None:
            self._since = now
        elif not holds and self._since is not None:
            self._seconds += now - self._since
            self._since = None

    def value(self, now: float) -> Json:
        """Return the seconds, with three decimals."""
        running = now - self._since if self._since is not None else 0.0
        return round(self._seconds + running, 3)
