"""The API server's own options, named as kube-apiserver's where it has them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import click

from apiserver.access.options import OPEN_PORTS, AccessOptions

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Options:
    """As given; "" and empty sets are the defaults."""

    etcd_servers: str = ""
    grpc_address: str = "127.0.0.1:0"
    rest_address: str = "127.0.0.1:0"
    enabled_admission: frozenset[str] = frozenset()
    disabled_admission: frozenset[str] = frozenset()
    event_ttl_seconds: int = 3600
    # 0 keeps etcd's history.
    compaction_seconds: float = 300.0
    requests_in_flight: int = 400
    mutating_requests_in_flight: int = 200
    priority_and_fairness: bool = True
    access: AccessOptions = OPEN_PORTS


def parse_duration(text: str) -> float:
    """Seconds in Go's form (`1h30m`, `500ms`, `0`); raises ValueError."""
    if text == "0":
        return 0.0
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is no duration, as 1h, 5m, 30s, 1m30s or 0")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def duration_seconds(context: click.Context, parameter: click.Parameter, text: str) -> float:
    """A click callback."""
    del context
    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from None
