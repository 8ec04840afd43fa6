"""Types of options of `nominee chaos`."""

from __future__ import annotations

import click

from nominee.lab.chaos.cases.case import Case, CaseError
from nominee.lab.chaos.cases.perturbations import Action
from nominee.machinery.wire.values.scalars import parse_seconds


class Duration(click.ParamType["float"]):
    """A duration as Go writes it (`10m`, `90s`) or in seconds; returns seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds."""
        if isinstance(value, float):
            return value
        text = str(value)
        try:
            seconds = float(text) if text.replace(".", "", 1).isdigit() else parse_seconds(text)
        except ValueError:
            seconds = 0.0
        if seconds <= 0:
            self.fail(f"{value!r} is not a duration; write 10m or 90s", param, ctx)
        return seconds


class Actions(click.ParamType["tuple[Action, ...]"]):
    """Actions of failpoints, separated by commas."""

    name = "list"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Action, ...]:
        """Return the actions."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(Action(word.strip()) for word in str(value).split(","))
        except ValueError as error:
            self.fail(f"{error}; there are {', '.join(each.value for each in Action)}", param, ctx)


class Identifier(click.ParamType["Case"]):
    """The identifier of a case."""

    name = "case"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Case:
        """Return the case."""
        if isinstance(value, Case):
            return value
        try:
            return Case.parse(str(value))
        except CaseError as error:
            self.fail(str(error), param, ctx)
