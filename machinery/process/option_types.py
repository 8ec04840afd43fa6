"""The types of a component's options, for click; the error for a wrong value names a correct one."""

from __future__ import annotations

from collections.abc import Callable

import click

from nominee.machinery.client.etcd_endpoints import endpoints
from nominee.machinery.wire.values.scalars import parse_seconds


class Duration(click.ParamType[float]):
    """A Go duration (`1m30s`, `500ms`, `0`) as seconds; `above_zero` refuses 0, too. Never negative."""

    name = "duration"

    def __init__(self, *, above_zero: bool = False) -> None:
        self._above_zero = above_zero

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            seconds = parse_seconds(str(value))
        except ValueError:
            self.fail(f"{str(value)!r} is no duration; write 500ms, 10s or 1m30s", param, ctx)
        if seconds < 0 or (self._above_zero and seconds == 0):
            self.fail(f"{value} must {'be positive' if self._above_zero else 'not be negative'}", param, ctx)
        return seconds


class EtcdServers(click.ParamType[str]):
    """Etcd's members, `HOST:PORT,...` or `http://HOST:PORT,...`; an empty text is not valid."""

    name = "etcd servers"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return ",".join(endpoints(str(value)))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class ApiServer(click.ParamType[str]):
    """The address of an API server, or its name in the directory (`apiserver-1`); "" is any."""

    name = "api server"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        base, _, index = text.partition("-")
        if text and ":" not in text and (base != "apiserver" or not (text == base or index.isdigit())):
            self.fail(f"{text!r}: write HOST:PORT, or a name such as apiserver-1", param, ctx)
        return text


def reading_all(
    read: Callable[[str], dict[str, bool]],
) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, bool]]:
    """Read every value of a repeated option into one mapping; of a name given twice the later value holds.

    Source: component-base 1.36, MapStringBool.
    """

    def callback(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, bool]:
        try:
            return {name: value for text in texts for name, value in read(text).items()}
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return callback


def reading(read: Callable[[str], object]) -> Callable[[click.Context, click.Parameter, str], object]:
    """Return the callback of an option whose text is read by a function that may raise ValueError."""

    def callback(_: click.Context, __: click.Parameter, text: str) -> object:
        try:
            return read(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return callback
