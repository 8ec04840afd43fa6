"""JSON forms of scalars, and of the types that write themselves: Quantity, Time, IntOrString, raw JSON."""

from __future__ import annotations

import base64
import binascii
import datetime
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nominee.machinery.resources.quantity import Quantity, QuantityError
from nominee.machinery.wire.values import go_base64, go_time

_META = "k8s.io.apimachinery.pkg.apis.meta.v1"
Json = Any
"""What package json reads and writes."""
Value = Any
"""A message, or the value of a scalar field."""


class DecodeError(ValueError):
    """JSON that does not decode to the message: `path` is the field, `message` the problem."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


def json_type(value: object) -> str:
    """Return the name of a JSON value's type in Go's errors."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


@dataclass(frozen=True, slots=True)
class ScalarCodec:
    """A scalar's two directions; `from_json(value, path)` raises DecodeError."""

    to_json: Callable[[Value], Json]
    from_json: Callable[[Json, str], Value]


@dataclass(frozen=True, slots=True)
class OwnCodec:
    """A type with its own JSON form; `from_json(value, message, path)` fills the message."""

    to_json: Callable[[Value], Json]
    from_json: Callable[[Json, Value, str], None]


def _same(value: object) -> Json:
    return value


def _string(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise DecodeError(path, f"expected a string, got {json_type(value)}")
    return value


def _bool(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        raise DecodeError(path, f"expected true or false, got {json_type(value)}")
    return value


def _integer(bits: int) -> Callable[[Json, str], int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def convert(value: object, path: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise DecodeError(path, f"expected an integer, got {json_type(value)} {value!r}")
        if not low <= value <= high:
            raise DecodeError(path, f"{value} does not fit into int{bits}")
        return value

    return convert


def _bytes(value: object, path: str) -> bytes:
    text = _string(value, path)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        problem = go_base64.problem(text)
        if problem:
            raise DecodeError(path, problem) from None
    # Go skips line ends, and does not mind bits that are left over.
    return base64.b64decode("".join(text.split()))


SCALARS: dict[str, ScalarCodec] = {
    "string": ScalarCodec(_same, _string),
    "bool": ScalarCodec(_same, _bool),
    "int32": ScalarCodec(_same, _integer(32)),
    "int64": ScalarCodec(_same, _integer(64)),
    "bytes": ScalarCodec(lambda value: base64.b64encode(value).decode(), _bytes),
}


# --- quantities ---


@lru_cache(maxsize=8192)
def _quantity_text(text: str) -> str:
    return str(Quantity.parse(text))


def _quantity_to_json(message: Value) -> str:
    return str(message.string) or "0"


def _quantity_from_json(value: object, message: Value, path: str) -> None:
    if value is None:
        message.string = "0"
        return
    # Upstream reads the JSON as a text, whatever it is, and ignores blanks around it.
    text = value.strip() if isinstance(value, str) else json.dumps(value)
    try:
        message.string = _quantity_text(text)
    except QuantityError as error:
        raise DecodeError(path, str(error)) from None


# --- times ---

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


_NANOS = 1_000_000_000
_YEAR_1, _YEAR_9999 = -62_135_596_800, 253_402_300_799
_CYCLE_SECONDS = 146_097 * 86_400
_TIMES_MAX = 4096
"""Times whose text is cached: an object's conditions and the objects of one moment have the same."""
_TIME_LENGTH_MAX = 40
"""A longer text, with a fraction of many digits, is not cached."""


def format_time(seconds: int, nanos: int = 0, *, micro: bool = False) -> str:
    """RFC 3339 in UTC: whole seconds (Time), or with six digits (MicroTime).

    Protobuf can say any moment; those outside of the years 1 to 9999 are shown as Go shows them.
    """
    if not 0 <= nanos < _NANOS:
        seconds, nanos = seconds + nanos // _NANOS, nanos % _NANOS
    text = _whole_seconds(seconds)
    return f"{text}.{nanos // 1000:06d}Z" if micro else f"{text}Z"


@lru_cache(_TIMES_MAX)
def _whole_seconds(seconds: int) -> str:
    if _YEAR_1 <= seconds <= _YEAR_9999:
        return (_EPOCH + datetime.timedelta(seconds=seconds)).isoformat()[:19]
    # The calendar repeats every 400 years.
    cycles, within = divmod(seconds, _CYCLE_SECONDS)
    moment = _EPOCH + datetime.timedelta(seconds=within)
    return f"{moment.year + 400 * cycles:04d}{moment.isoformat()[4:19]}"


def parse_time(text: str) -> tuple[int, int]:
    """(seconds since the epoch, nanoseconds) of an RFC 3339 text; ValueError for any other."""
    return _parsed(text) if len(text) <= _TIME_LENGTH_MAX else _parsed.__wrapped__(text)


@lru_cache(_TIMES_MAX)
def _parsed(text: str) -> tuple[int, int]:
    match = _RFC3339.fullmatch(text)
    if match is not None:
        digits = (match.group(1) or ".0")[1:10].ljust(9, "0")
        whole = text[:19].upper() + match.group(2).upper().replace("Z", "+00:00")
        try:
            moment = datetime.datetime.fromisoformat(whole)
            return int((moment - _EPOCH).total_seconds()), int(digits)
        except ValueError:
            pass
    raise ValueError(go_time.problem(text) or f"parsing time {go_time.quote(text)}: not supported")


_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"


def _check_micro(text: str) -> None:
    """Check that a MicroTime has exactly six digits of a second; ValueError in Go's words."""
    fraction = text[19:]
    digits = len(fraction) - len(fraction[1:].lstrip("0123456789")) - 1 if fraction[0] == "." else 0
    layout = f'parsing time "{text}" as "{_MICRO_LAYOUT}"'
    if digits < 6:
        raise ValueError(f'{layout}: cannot parse "{fraction}" as ".000000"')
    if digits > 6:
        raise ValueError(f'{layout}: cannot parse "{fraction[7:]}" as "Z07:00"')


def _time_codec(*, micro: bool) -> OwnCodec:
    def to_json(message: Value) -> str | None:
        if not message.HasField("seconds"):
            return None
        return format_time(message.seconds, message.nanos, micro=micro)

    def from_json(value: object, message: Value, path: str) -> None:
        if value is None:
            return
        try:
            text = _string(value, path)
            seconds, nanos = parse_time(text)
            if micro:
                _check_micro(text)
        except ValueError as error:
            if isinstance(error, DecodeError):
                raise
            problem = (
                str(error).replace(f'as "{go_time.LAYOUT}"', f'as "{_MICRO_LAYOUT}"') if micro else str(error)
            )
            raise DecodeError(path, problem) from None
        message.seconds = seconds
        message.nanos = nanos // 1000 * 1000 if micro else 0

    return OwnCodec(to_json, from_json)


# --- the others that write themselves ---

_DURATION = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^.0-9]*)", re.ASCII)
_DURATION_UNITS = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000,
    "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000,
}  # fmt: skip
_DURATION_MAX = (1 << 63) - 1
_DURATION_DIGITS = 19
"""Of an int64, and all that a fraction has to say."""


def parse_duration(text: str) -> int:
    """Return the nanoseconds of a Go duration ("1h30m", "250ms", "0").

    Raises:
        ValueError: the text is not a duration; in Go's words.
    """
    shown = go_time.quote(text)
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    total = 0
    while True:
        match = _DURATION.match(rest)
        assert match is not None
        whole, fraction, unit = match.groups()
        if not whole and not fraction:
            raise ValueError(f"time: invalid duration {shown}")
        if not unit:
            raise ValueError(f"time: missing unit in duration {shown}")
        size = _DURATION_UNITS.get(unit)
        if size is None:
            raise ValueError(f"time: unknown unit {go_time.quote(unit)} in duration {shown}")
        whole = whole.lstrip("0")
        if len(whole) > _DURATION_DIGITS:
            raise ValueError(f"time: invalid duration {shown}")
        total += int(whole or 0) * size
        if fraction:
            fraction = fraction[:_DURATION_DIGITS]
            total += int(fraction) * size // 10 ** len(fraction)
        # Only a negative one may be as long as the longest, and one more.
        if total > _DURATION_MAX + text.startswith("-"):
            raise ValueError(f"time: invalid duration {shown}")
        rest = rest[match.end() :]
        if not rest:
            return -total if text.startswith("-") else total


def parse_seconds(text: str) -> float:
    """Return the seconds of a Go duration.

    Raises:
        ValueError: the text is not a duration.
    """
    return parse_duration(text) / 1e9


def format_duration(nanoseconds: int) -> str:
    """Return a Go duration's text ("1h30m0s", "1.5s", "250ms")."""
    if nanoseconds == 0:
        return "0s"
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest < 1_000_000_000:
        unit, size = next((u, s) for u, s in (("ms", 1_000_000), ("µs", 1_000), ("ns", 1)) if rest >= s)
        whole, fraction = divmod(rest, size)
        digits = f".{fraction:0{len(str(size)) - 1}d}".rstrip("0") if fraction else ""
        return f"{sign}{whole}{digits}{unit}"
    seconds, nanos = divmod(rest, 1_000_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    digits = f".{nanos:09d}".rstrip("0") if nanos else ""
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{seconds}{digits}s"


def _duration_from_json(value: object, message: Value, path: str) -> None:
    try:
        message.duration = parse_duration(_string(value, path))
    except ValueError as error:
        if isinstance(error, DecodeError):
            raise
        raise DecodeError(path, str(error)) from None


def _int_or_string_to_json(message: Value) -> int | str:
    return str(message.strVal) if message.type == 1 else int(message.intVal)


def _int_or_string_from_json(value: object, message: Value, path: str) -> None:
    if isinstance(value, str):
        message.type, message.intVal, message.strVal = 1, 0, value
    else:
        message.type, message.intVal, message.strVal = 0, SCALARS["int32"].from_json(value, path), ""


def _raw_codec(field: str) -> OwnCodec:
    def to_json(message: Value) -> Json:
        raw = getattr(message, field)
        return json.loads(raw) if raw else None

    def from_json(value: object, message: Value, path: str) -> None:
        setattr(message, field, json.dumps(value, separators=(",", ":")).encode())

    return OwnCodec(to_json, from_json)


def _list_from_json(value: object, message: Value, path: str) -> None:
    if not isinstance(value, list):
        raise DecodeError(path, f"expected an array, got {json_type(value)}")
    message.items.extend(_string(item, f"{path}[{index}]") for index, item in enumerate(value))


_LIST = OwnCodec(lambda message: list(message.items), _list_from_json)

OWN: dict[str, OwnCodec] = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity": OwnCodec(_quantity_to_json, _quantity_from_json),
    f"{_META}.Time": _time_codec(micro=False),
    f"{_META}.MicroTime": _time_codec(micro=True),
    f"{_META}.Duration": OwnCodec(
        lambda message: format_duration(message.duration), _duration_from_json
    ),
    f"{_META}.FieldsV1": _raw_codec("Raw"),
    f"{_META}.Verbs": _LIST,
    "k8s.io.api.authentication.v1.ExtraValue": _LIST,
    "k8s.io.api.authorization.v1.ExtraValue": _LIST,
    "k8s.io.api.certificates.v1.ExtraValue": _LIST,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _raw_codec("raw"),
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": OwnCodec(
        _int_or_string_to_json, _int_or_string_from_json
    ),
}  # fmt: skip
