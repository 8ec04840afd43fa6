"""Structured logs: one line an event on standard error, as text that reads like klog's or as JSON.

    log = logs.get()                       # anywhere; may be called at import
    log.info("Bound", pod="ns/name", node="n1")
    I1121 04:38:10.123456 scheduler] Bound pod=ns/name node=n1

`configure` is called once a process, in `process.run`. Until then only warnings and errors are written, to
standard error: standard output has a command's results. Values are made strings by `str`, so a key may be
given as it is. Never log in a hot loop.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

from nominee.machinery.runtime.clock import Clock, SystemClock, rfc3339_micro

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger

# structlog.dev imports rich (35 ms and 3 MB a process) where it is installed, for a console that is not used.
_RICH_WAS_LOADED = "rich" in sys.modules
if not _RICH_WAS_LOADED:
    sys.modules["rich"] = None  # type: ignore[assignment]  # None: its import fails
try:
    import structlog
finally:
    if not _RICH_WAS_LOADED:
        del sys.modules["rich"]

Format = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]
FORMATS: tuple[Format, ...] = ("text", "json")
LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")
Logger = structlog.typing.FilteringBoundLogger

_SEVERITY = {"debug": "D", "info": "I", "warning": "W", "error": "E", "critical": "F"}
_PLAIN = re.compile(r"[^\s\"=]+")
_RESERVED = frozenset({"event", "level", "timestamp", "component", "exception"})


def get(**context: object) -> Logger:
    """Return a logger; `context` is added to each of its lines."""
    logger: Logger = structlog.get_logger(**context)
    return logger


def configure(
    component: str,
    *,
    level: Level = "info",
    format: Format = "text",
    stream: TextIO | None = None,
    clock: Clock | None = None,
) -> None:
    """Send all lines of this process to `stream` (standard error), each with the component's name.

    The standard library's loggers (grpc, asyncio, uvicorn) are sent the same way, from WARNING up.
    """
    out = stream if stream is not None else sys.stderr
    _configure(component, level, format, clock or SystemClock(), lambda: out, is_final=True)
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _ToStructlog)]:
        root.removeHandler(handler)
    root.addHandler(_ToStructlog())
    root.setLevel(logging.WARNING)


def _configure(
    component: str,
    level: Level,
    format: Format,
    clock: Clock,
    stream: Callable[[], TextIO],
    *,
    is_final: bool,
) -> None:
    """Configure structlog; loggers keep a final configuration when they are used for the first time."""

    def stamp(_: WrappedLogger, method: str, event: EventDict) -> EventDict:
        event["timestamp"] = rfc3339_micro(clock.now())
        event["level"] = "warning" if method == "warn" else "error" if method == "exception" else method
        event["component"] = component
        return event

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            stamp,
            structlog.processors.format_exc_info,
            render_json if format == "json" else render_text,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        context_class=dict,
        logger_factory=lambda *_: structlog.WriteLogger(stream()),
        cache_logger_on_first_use=is_final,
    )


@contextmanager
def written_to(path: Path, component: str) -> Iterator[None]:
    """Append all lines to a file while the block runs, in a process that does not call `configure`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        _configure(component, "info", "text", SystemClock(), lambda: file, is_final=False)
        try:
            yield
        finally:
            _configure_default()


def _configure_default() -> None:
    _configure("nominee", "warning", "text", SystemClock(), lambda: sys.stderr, is_final=False)


class _ToStructlog(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
        except (TypeError, ValueError):
            text = str(record.msg)
        get().log(record.levelno, text, logger=record.name, exc_info=record.exc_info or None)


def render_text(_: WrappedLogger, __: str, event: EventDict) -> str:
    """`I1121 04:38:10.123456 component] message key=value`; an exception follows on its own lines."""
    stamp = str(event["timestamp"])
    severity = _SEVERITY.get(str(event["level"]), "I")
    head = f"{severity}{stamp[5:7]}{stamp[8:10]} {stamp[11:26]} {event['component']}]"
    fields = "".join(f" {key}={_quote(value)}" for key, value in event.items() if key not in _RESERVED)
    line = f"{head} {event.get('event', '')}{fields}"
    return f"{line}\n{event['exception']}" if event.get("exception") else line


def render_json(_: WrappedLogger, __: str, event: EventDict) -> str:
    """Return one JSON object a line: timestamp, level, component, msg, and the fields."""
    line: dict[str, object] = {
        "timestamp": event.pop("timestamp"),
        "level": event.pop("level"),
        "component": event.pop("component"),
        "msg": event.pop("event", ""),
    }
    line.update(event)
    return json.dumps(line, default=_jsonable, ensure_ascii=False)


def _jsonable(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return str(value)


def _quote(value: object) -> str:
    text = str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


if not structlog.is_configured():
    _configure_default()
