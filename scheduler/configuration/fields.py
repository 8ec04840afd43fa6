"""Read a JSON object field by field, with the path of every field that is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nominee.machinery.api import names
from nominee.machinery.wire.values.scalars import json_type, parse_seconds


class Fields:
    """Reads one object of a configuration; `finish` reports the fields that were not read.

    A field of the wrong type is reported and its default returned, so that reading goes on.
    """

    def __init__(self, data: Mapping[str, Any], path: str, problems: list[str]) -> None:
        self.data = data
        self.path = path
        self.problems = problems
        self._asked: set[str] = set()

    # Errors

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return f"{self.path}.{name}" if self.path else name

    def invalid(self, name: str, value: object, detail: str) -> None:
        self.problems.append(names.invalid(self.at(name), value, detail))

    def required(self, name: str) -> None:
        self.problems.append(f"{self.at(name)}: Required value")

    def duplicate(self, name: str, value: str) -> None:
        path = self.at(name) if name else self.path
        self.problems.append(f"{path}: Duplicate value: {names.go_quote(value)}")

    def finish(self) -> None:
        """Report every field that was not read: it is unknown."""
        for name in self.data:
            if name not in self._asked:
                self.problems.append(f'strict decoding error: unknown field "{self.at(name)}"')

    # Values

    def ignore(self, *field_names: str) -> None:
        """Accept fields that are known and have no effect here."""
        self._asked.update(field_names)

    def get(self, name: str, *types: type, wanted: str) -> Any | None:
        """Return the value of a field if it has one of the types; `wanted` names them in the error."""
        self._asked.add(name)
        value = self.data.get(name)
        if value is None:
            return None
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            self.problems.append(f"{self.at(name)}: expected {wanted}, got {json_type(value)}")
            return None
        return value

    def text(self, name: str, default: str) -> str:
        value = self.get(name, str, wanted="a string")
        return default if value is None else str(value)

    def integer(self, name: str, default: int) -> int:
        value = self.optional_integer(name)
        return default if value is None else value

    def optional_integer(self, name: str) -> int | None:
        value = self.get(name, int, wanted="an integer")
        return None if value is None else int(value)

    def boolean(self, name: str, default: bool) -> bool:
        value = self.get(name, bool, wanted="a boolean")
        return default if value is None else bool(value)

    def duration(self, name: str, default_seconds: float) -> float:
        """Return the seconds of `15s` or `1m30s`."""
        value = self.get(name, str, wanted="a duration as a string")
        if value is None:
            return default_seconds
        try:
            return parse_seconds(value)
        except ValueError as error:
            self.problems.append(f"{self.at(name)}: {error}")
            return default_seconds

    def child(self, name: str) -> Fields:
        """Return a sub-object; an empty one where it is absent."""
        value = self.get(name, Mapping, wanted="an object")
        return Fields(value or {}, self.at(name), self.problems)

    def children(self, name: str) -> list[Fields]:
        """Return a list of sub-objects."""
        value: Sequence[Any] = self.get(name, list, wanted="a list") or ()
        found = []
        for index, item in enumerate(value):
            path = f"{self.at(name)}[{index}]"
            if isinstance(item, Mapping):
                found.append(Fields(item, path, self.problems))
            else:
                self.problems.append(f"{path}: expected an object, got {json_type(item)}")
        return found
