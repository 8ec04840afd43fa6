"""Collect the values of a scenario's measures while it is played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from google.protobuf.message import Message

from nominee.lab.scenario.measures.base import NamedMeasure
from nominee.lab.scenario.observing.base import Condition
from nominee.lab.scenario.observing.world import World
from nominee.lab.scenario.result import Measurements
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.runtime.clock import Clock
from nominee.machinery.wire.values.scalars import Json


class Collector:
    """The recorders of one run."""

    def __init__(self, measures: Sequence[NamedMeasure], world: World, clock: Clock) -> None:
        self._clock = clock
        self._recorders = [(each, each.measure.recorder(world)) for each in measures]
        for kind in dict.fromkeys(kind for each in conditions_of(measures) for kind in each.watched()):
            for obj in world.messages(kind):
                self.on_change(kind, None, obj)

    def on_change(self, kind: AnyKind, old: Message | None, new: Message | None) -> None:
        """Record a change of an object (a listener of the world)."""
        obj = new if new is not None else old
        assert obj is not None
        now = self._clock.monotonic()
        for _, recorder in self._recorders:
            recorder.on_change(kind, obj, now)

    def on_step(self, step: str) -> None:
        """Record that a step begins."""
        now = self._clock.monotonic()
        for _, recorder in self._recorders:
            recorder.on_step(step, now)

    def results(self) -> tuple[Measurements, ...]:
        """Return the values up to now, by variant."""
        now = self._clock.monotonic()
        rows: list[tuple[Mapping[str, Json], dict[str, Json]]] = []
        for each, recorder in self._recorders:
            values = next((values for variant, values in rows if variant == each.variant), None)
            if values is None:
                values = {}
                rows.append((each.variant, values))
            values[each.name] = recorder.value(now)
        return tuple(Measurements(variant=variant, values=values) for variant, values in rows)


def conditions_of(measures: Sequence[NamedMeasure]) -> list[Condition]:
    """Return the conditions that measures look at."""
    return [condition for each in measures for condition in each.measure.conditions]
