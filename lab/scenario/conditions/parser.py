"""Conditions from JSON that the schema accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nominee.lab.scenario.conditions.all_of import AllOf
from nominee.lab.scenario.conditions.base import Condition
from nominee.lab.scenario.conditions.table import CONDITIONS
from nominee.lab.scenario.fields.parser import Parser
from nominee.lab.scenario.fields.paths import FieldPath
from nominee.machinery.wire.scalars import Json

_NO_CONDITION: Final = AllOf(conditions=())
"""In the place of one that has a mistake."""


class ConditionParser(Parser):
    """Makes conditions of a document."""

    def condition(self, path: FieldPath, value: Mapping[str, Json]) -> Condition:
        """Return the one condition of a mapping; other keys, such as `seconds`, are the caller's."""
        given = [key for key in CONDITIONS if key in value]
        if len(given) != 1:
            found = f"got {' and '.join(given)}" if given else "got none of them"
            self.fault(path, f"give exactly one of {', '.join(CONDITIONS)}; {found}")
            return _NO_CONDITION
        return CONDITIONS[given[0]].parse(self, (*path, given[0]), value[given[0]])
