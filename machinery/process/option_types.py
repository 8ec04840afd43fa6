"""The types of a component's options, for click; the error for a wrong value names a correct one."""

from __future__ import annotations

import click

from machinery.client.etcd_endpoints import endpoints
from machinery.wire.scalars import parse_seconds


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
