"""The log lines of simulated processes, with their names and the simulation's time."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import structlog

from nominee.machinery.runtime.clock import rfc3339_micro
from nominee.machinery.runtime.logs import render_text
from nominee.machinery.runtime.runtime import RUNTIME
from nominee.simulation.runtime import current_owner

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger


class _Sink:
    """A logger that hands lines to the process that wrote them."""

    def msg(self, line: str) -> None:
        runtime = RUNTIME.get()
        if runtime is not None:
            runtime.log(line)

    debug = info = warning = error = critical = exception = warn = log = msg


def _stamp(_: WrappedLogger, method: str, event: EventDict) -> EventDict:
    runtime, owner = RUNTIME.get(), current_owner()
    event["timestamp"] = rfc3339_micro(runtime.clock.now() if runtime is not None else 0.0)
    event["level"] = "warning" if method == "warn" else "error" if method == "exception" else method
    event["component"] = owner.name if owner is not None else ""
    return event


def configure(level: str) -> dict[str, object]:
    """Send the log lines to the processes; return the configuration that was there, for `restore`."""
    before = structlog.get_config()
    structlog.configure(
        processors=[_stamp, structlog.processors.format_exc_info, render_text],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        context_class=dict,
        logger_factory=lambda *_: _Sink(),
        cache_logger_on_first_use=False,
    )
    return before


def restore(before: dict[str, object]) -> None:
    """Restore the configuration that `configure` replaced."""
    structlog.configure(**before)  # type: ignore[arg-type]
