"""`seconds`: the time between two moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from google.protobuf.message import Message

from nominee.lab.scenario.fields.declared import Field
from nominee.lab.scenario.fields.fragments import CONDITION, Fragment, mapping, text
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.lab.scenario.measures.base import Measure, Recorder, concerns, observable
from nominee.lab.scenario.observing.base import Condition, ConditionParser, Objects
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.wire.values.scalars import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The first time at which a condition holds, or at which a step of a name begins."""

    condition: Condition | None = None
    step: str = ""


_STEP: Final = mapping("A step.", {"step": text("When the step of this name begins.")}, required=["step"])
_MOMENT: Final[Fragment] = {
    "description": "A condition, when it first holds, or a step.",
    "anyOf": [CONDITION, _STEP],
}


def _moment(parser: ConditionParser, path: FieldPath, value: Mapping[str, Json]) -> Moment:
    if "step" in value:
        return Moment(step=value["step"])
    return Moment(condition=observable(parser, path, value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration(Measure):
    """The seconds from one moment to the first occurrence of another one after it; None without both."""

    key: ClassVar[str] = "seconds"
    row: ClassVar[str] = (
        "the seconds `from` one moment `until` another one after it: `{step: NAME}`, when a step begins, "
        "or a condition, when it first holds; null if one of them does not come"
    )

    about: ClassVar[str] = "A duration."

    start: Annotated[Moment, Field(_MOMENT, _moment, key="from")]
    end: Annotated[Moment, Field(_MOMENT, _moment, key="until")]

    @property
    def conditions(self) -> Sequence[Condition]:
        """Return the conditions of the moments."""
        moments = (self.start, self.end)
        return tuple(each.condition for each in moments if each.condition is not None)

    @property
    def steps(self) -> Sequence[str]:
        """Return the steps of the moments."""
        return tuple(each.step for each in (self.start, self.end) if each.step)

    def recorder(self, objects: Objects) -> Recorder:
        """Return a recorder of the two moments."""
        return _Timer(self, objects)


class _Timer(Recorder):
    """Records when the first moment comes, and when the other one comes after it."""

    def __init__(self, duration: Duration, objects: Objects) -> None:
        self._awaited = [duration.start, duration.end]
        self._objects = objects
        self._times: list[float] = []

    def on_step(self, name: str, now: float) -> None:
        """Record the moment of a step; the condition after it may hold already."""
        if self._awaited and self._awaited[0].step and self._awaited[0].step == name:
            self._came(now)

    def on_change(self, kind: AnyKind, obj: Message, now: float) -> None:
        """Record the moment of a condition."""
        condition = self._awaited[0].condition if self._awaited else None
        if condition is not None and concerns(condition, kind, obj):
            self._look(condition, now)

    def _look(self, condition: Condition, now: float) -> None:
        if condition.evaluate(self._objects).holds:
            self._came(now)

    def _came(self, now: float) -> None:
        self._times.append(now)
        self._awaited.pop(0)
        following = self._awaited[0].condition if self._awaited else None
        if following is not None:
            self._look(following, now)

    def value(self, now: float) -> Json:
        """Return the seconds, with three decimals; None if a moment did not come."""
        return round(self._times[1] - self._times[0], 3) if len(self._times) == 2 else None
