"""The list of the kinds of measures, in the order of the schema and of docs/scenarios.md."""

from __future__ import annotations

from nominee.lab.scenario.measures.base import Measure
from nominee.lab.scenario.measures.count import Count
from nominee.lab.scenario.measures.duration import Duration
from nominee.lab.scenario.measures.held import Held
from nominee.lab.scenario.measures.values import Values

_KINDS: tuple[type[Measure], ...] = (Count, Held, Duration, Values)
MEASURES: dict[str, type[Measure]] = {each.key: each for each in _KINDS}
"""By the field of a measure that has the kind."""
