"""Quantities: `1500m`, `2Gi`, `1e3`, exact, as Kubernetes' `resource.Quantity`.

A quantity is `unscaled * 10**exponent` in whole numbers; no float takes part. Upstream keeps a number in one
of two forms, and the form shows: a *small* one (int64; mostly answers 0 when a conversion overflows) and a
*big* one (arbitrary precision; wraps around when a conversion overflows, and rounds negative numbers up
rather than away from zero). Both are kept apart here, so that the verdicts are the same also at the edges.

Source: kube-apiserver 1.36.2, k8s.io/apimachinery/pkg/api/resource. Judge: tests/golden/quantity.jsonl. In
1.36 a DecimalSI number beyond exa loses its exponent when printed; 1.37 prints `e21` instead.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Protocol

_INT64_MIN = -(1 << 63)
_INT64_MAX = (1 << 63) - 1
_INT64_SAFE_DIGITS = 18  # any number of so many digits is an int64
_NANO = -9
EXPONENT_MAX = 3000  # beyond it upstream would fill its memory with zeros; here the suffix is refused
TEXT_LENGTH_MAX = 1024

WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
WRONG_NUMBER = "unable to parse numeric part of quantity"
WRONG_SUFFIX = "unable to parse quantity's suffix"

_TEXT = re.compile(r"([+-]?)(([0-9]*)(?:\.([0-9]*))?)([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT_SUFFIX = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
# Go's strings.TrimSpace
_WHITESPACE = " \t\n\v\f\r\x85\xa0"


class QuantityError(ValueError):
    """The text is no quantity; the message is upstream's."""


class Format(Enum):
    """The suffixes of a quantity: powers of 1000 with a letter, of 1024 with `i`, or with `e`."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"
    UNSET = ""
    """That of the JSON value `null`; printed as `DecimalExponent`."""


_DECIMAL_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_NAMES = {0: ""} | {exponent: suffix for suffix, exponent in _BINARY_SUFFIXES.items()}


class _HasText(Protocol):
    string: str


def _fits_int64(number: int) -> bool:
    return _INT64_MIN <= number <= _INT64_MAX


def _wrap_int64(number: int) -> int:
    """Return the low 64 bits, which Go keeps of a number that does not fit."""
    return (number - _INT64_MIN) % (1 << 64) + _INT64_MIN


def _quotient(number: int, divisor: int) -> tuple[int, int]:
    """Quotient and remainder towards zero, as Go divides."""
    quotient, remainder = divmod(abs(number), divisor)
    return (quotient, remainder) if number >= 0 else (-quotient, -remainder)


def _divide_away(number: int, divisor: int) -> tuple[int, bool]:
    """Divides, rounding away from zero; the flag is false when something was lost."""
    quotient, remainder = _quotient(number, divisor)
    if remainder:
        quotient += 1 if number > 0 else -1
    return quotient, not remainder


def _strip_factor(number: int, factor: int) -> tuple[int, int]:
    """Divide by a factor as often as possible; the second value is how often."""
    times = 0
    while number and number % factor == 0:
        number //= factor
        times += 1
    return number, times


class Quantity:
    """An immutable quantity. Equal quantities may print differently (`1Ki`, `1024`)."""

    __slots__ = ("_big", "_exponent", "_text", "_unscaled", "format")

    _unscaled: int
    _exponent: int
    _big: bool
    _text: str
    format: Format

    def __init__(
        self,
        unscaled: int = 0,
        exponent: int = 0,
        format: Format = Format.DECIMAL_SI,  # upstream's name
        *,
        big: bool | None = None,
        text: str = "",
    ) -> None:
        """`unscaled * 10**exponent`; `big` and `text` are for this module (see its docstring)."""
        self._unscaled = unscaled
        self._exponent = exponent
        self._big = not _fits_int64(unscaled) if big is None else big
        self._text = text
        self.format = format

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Parse the text of a quantity.

        Raises:
            QuantityError: the text is not a quantity.
        """
        return _parse(text)

    @classmethod
    def parse_json(cls, token: str) -> Quantity:
        """Parse a raw JSON token (`"1Gi"`, `1.5`, `null`); blanks around the text are ignored."""
        if token == "null":
            return cls(format=Format.UNSET)
        if len(token) >= 2 and token[0] == token[-1] == '"':
            token = token[1:-1]
        return _parse(token.strip(_WHITESPACE))

    @classmethod
    def of(cls, value: int, format: Format = Format.DECIMAL_SI) -> Quantity:
        """Return a quantity of a whole number of units."""
        return cls(value, 0, format)

    @classmethod
    def of_milli(cls, value: int, format: Format = Format.DECIMAL_SI) -> Quantity:
        """Return a quantity of a number of thousandths."""
        return cls(value, -3, format)

    # What it is worth

    def value(self) -> int:
        """Whole units, rounded up. Overflows as upstream's int64 does (see the module)."""
        return self.scaled_value(0)

    def milli_value(self) -> int:
        """Return the thousandths, rounded up. They overflow as upstream's int64 does."""
        return self.scaled_value(-3)

    def scaled_value(self, exponent: int) -> int:
        """Return how many `10**exponent` it is, rounded up. The number overflows as upstream's int64 does."""
        shift = self._exponent - exponent
        if not self._big:
            if shift < 0:
                return _divide_away(self._unscaled, 10**-shift)[0]
            scaled: int = self._unscaled * 10**shift
            if _fits_int64(scaled):
                return scaled
            # Upstream multiplies at once by these powers, and digit by digit by all others.
            wraps = shift in (1, 2, 3, 6, 9) and self._unscaled != _INT64_MIN
            return _wrap_int64(scaled) if wraps else 0
        if shift == 0:
            return _wrap_int64(self._unscaled)
        if shift > 0:
            # Go multiplies int64s; a power that is too large for one converts to the lowest.
            factor = 10**shift if shift <= _INT64_SAFE_DIGITS else _INT64_MIN
            return _wrap_int64(_wrap_int64(self._unscaled) * factor)
        divisor = 10**-shift
        if self._unscaled < _INT64_MAX and -shift <= _INT64_SAFE_DIGITS:
            quotient, remainder = _quotient(_wrap_int64(self._unscaled), divisor)
        else:
            quotient, remainder = divmod(self._unscaled, divisor)
        return _wrap_int64(quotient + 1 if remainder else quotient)

    def as_int64(self) -> int | None:
        """Return the exact whole number, or None where upstream has no fast one."""
        if self._big or self._exponent < 0:
            return None
        value = self._unscaled * 10**self._exponent
        return value if _fits_int64(value) else None

    def approximate_float(self) -> float:
        """Return the nearest float, or one beside it; for metrics only."""
        if self._exponent == 0:
            return float(self._unscaled)
        return float(self._unscaled) * 10.0**self._exponent

    @property
    def sign(self) -> int:
        return (self._unscaled > 0) - (self._unscaled < 0)

    def decimal(self) -> str:
        """Return the exact decimal number, with as many places as are kept."""
        if self._exponent >= 0:
            return str(self._unscaled * 10**self._exponent)
        places = -self._exponent
        digits = str(abs(self._unscaled)).rjust(places + 1, "0")
        return f"{'-' if self._unscaled < 0 else ''}{digits[:-places]}.{digits[-places:]}"

    # Arithmetic

    def _common(self, other: Quantity) -> tuple[int, int, int]:
        exponent = min(self._exponent, other._exponent)
        mine = self._unscaled * 10 ** (self._exponent - exponent)
        return mine, other._unscaled * 10 ** (other._exponent - exponent), exponent

    def _plus(self, other: Quantity, factor: int) -> Quantity:
        format_ = self.format if self._unscaled else other.format
        if not self._big and not other._big:
            if not other._unscaled:
                return Quantity(self._unscaled, self._exponent, format_, big=False)
            if not self._unscaled:
                return Quantity(factor * other._unscaled, other._exponent, format_)
        mine, theirs, exponent = self._common(other)
        result = mine + factor * theirs
        big = self._big or other._big or not (_fits_int64(mine) and _fits_int64(theirs))
        return Quantity(result, exponent, format_, big=big or not _fits_int64(result))

    def __add__(self, other: Quantity) -> Quantity:
        return self._plus(other, 1)

    def __sub__(self, other: Quantity) -> Quantity:
        return self._plus(other, -1)

    def __neg__(self) -> Quantity:
        return Quantity(-self._unscaled, self._exponent, self.format, big=self._big)

    def __mul__(self, factor: int) -> Quantity:
        product = self._unscaled * factor
        if self._big:
            return Quantity(product, self._exponent, self.format, big=True)
        if not self._unscaled:
            return Quantity(0, self._exponent, self.format, big=False)
        if not factor:
            return Quantity(0, 0, self.format, big=False)
        if self._exponent >= 0:
            small = _fits_int64(product * 10**self._exponent)
        else:
            small = _fits_int64(product) and product % 10**-self._exponent == 0
        return Quantity(product, self._exponent, self.format, big=not small)

    def multiplied(self, factor: int) -> tuple[Quantity, bool]:
        """Return the product, and whether upstream's Mul calls it exact (its digits fit an int64)."""
        product = self * factor
        return product, not product._big or _fits_int64(product._unscaled)

    def round_up(self, exponent: int) -> tuple[Quantity, bool]:
        """Rounded away from zero to a multiple of `10**exponent`, and whether nothing was lost."""
        if self._exponent >= exponent and not self._big:
            return self, True
        if self._exponent >= exponent:
            unscaled, exact = self._unscaled * 10 ** (self._exponent - exponent), True
        else:
            unscaled, exact = _divide_away(self._unscaled, 10 ** (exponent - self._exponent))
        return Quantity(unscaled, exponent, self.format, big=self._big), exact

    def compare(self, other: Quantity) -> int:
        """-1, 0 or 1."""
        mine, theirs, _ = self._common(other)
        return (mine > theirs) - (mine < theirs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.compare(other) == 0

    def __lt__(self, other: Quantity) -> bool:
        return self.compare(other) < 0

    def __le__(self, other: Quantity) -> bool:
        return self.compare(other) <= 0

    def __gt__(self, other: Quantity) -> bool:
        return self.compare(other) > 0

    def __ge__(self, other: Quantity) -> bool:
        return self.compare(other) >= 0

    def __hash__(self) -> int:
        digits, times = _strip_factor(self._unscaled, 10)
        return hash((digits, self._exponent + times if digits else 0))

    def __bool__(self) -> bool:
        return self._unscaled != 0

    # Text

    def __str__(self) -> str:
        """Return the canonical form, or the text it was read from where that is kept (`100.100m`, `+1`)."""
        if not self._text:
            self._text = self.canonical()
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def canonical(self) -> str:
        """Return the shortest text without fractions in the quantity's own format."""
        if not self._unscaled:
            return "0"
        if self.format is Format.BINARY_SI:
            whole, exact = self.round_up(0)
            number = whole._unscaled * 10**whole._exponent
            if exact and not -1024 < number < 1024:
                # Of the lowest int64 upstream strips nothing: it cannot negate it.
                lowest = number == _INT64_MIN and not self._big
                digits, times = (number, 0) if lowest else _strip_factor(number, 1024)
                return f"{digits}{_BINARY_NAMES.get(times * 10, '')}"
        digits, times = _strip_factor(self._unscaled, 10)
        exponent = self._exponent + times
        digits *= 10 ** (exponent % 3)
        exponent -= exponent % 3
        if self.format in (Format.DECIMAL_EXPONENT, Format.UNSET):
            return f"{digits}e{exponent}" if exponent else str(digits)
        return f"{digits}{_DECIMAL_NAMES.get(exponent, '')}"


def _interpret(suffix: str) -> tuple[int, int, Format]:
    """Base, exponent and format of a suffix; QuantityError for none that is known."""
    if suffix in _DECIMAL_SUFFIXES:
        return 10, _DECIMAL_SUFFIXES[suffix], Format.DECIMAL_SI
    if suffix in _BINARY_SUFFIXES:
        return 2, _BINARY_SUFFIXES[suffix], Format.BINARY_SI
    match = _EXPONENT_SUFFIX.fullmatch(suffix)
    if match and len(suffix) < 20 and abs(int(match[1])) <= EXPONENT_MAX:
        return 10, int(match[1]), Format.DECIMAL_EXPONENT
    raise QuantityError(WRONG_SUFFIX)


def _parse_small(
    text: str, sign: int, whole: str, places: str, base: int, exponent: int, format_: Format
) -> Quantity | None:
    """Return the small form, or None if the number needs the big one.

    Upstream estimates a binary number's digits, so some that would fit are big all the same. It keeps the
    text only where a cheap test says that it is canonical already; the test passes `+1`, `1.` and `007` too.
    """
    mantissa = 1
    if base == 2:
        if places or 15 - len(whole) - exponent * 3 // 10 - 1 < 0:
            return None
        mantissa, exponent_10 = 1 << exponent, 0
    else:
        if len(whole) + len(places) > _INT64_SAFE_DIGITS:
            return None
        exponent_10 = exponent - len(places)
        if exponent_10 < _NANO:
            return None
    digits = whole + places
    number = int(digits)
    if not _fits_int64(number * mantissa):
        return None
    if format_ is Format.BINARY_SI:
        keeps_text = bool(number & 7)
    else:
        keeps_text = exponent_10 % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    return Quantity(
        sign * number * mantissa, exponent_10, format_, big=False, text=text if keeps_text else ""
    )


def _parse_big(sign: int, value: str, base: int, exponent: int, format_: Format) -> Quantity:
    """Return the big form: rounded up to nanos; a binary number is capped at the largest int64."""
    whole, _, places = value.partition(".")
    if not whole + places:
        raise QuantityError(WRONG_NUMBER)
    number, exponent_10 = int(whole + places), -len(places)
    if base == 2:
        number <<= exponent
    else:
        exponent_10 += exponent
    if not number:
        return Quantity(0, exponent_10, format_, big=True)
    if exponent_10 >= _NANO:
        number *= 10 ** (exponent_10 - _NANO)
    else:
        number = _divide_away(number, 10 ** (_NANO - exponent_10))[0]
    exponent_10 = _NANO
    if format_ is Format.BINARY_SI:
        if number > _INT64_MAX * 10**-_NANO:
            number, exponent_10 = _INT64_MAX, 0
        elif number < 10**-_NANO:
            format_ = Format.DECIMAL_SI
    return Quantity(sign * number, exponent_10, format_, big=True)


@lru_cache(maxsize=65536)
def _parse(text: str) -> Quantity:
    if text == "0":
        return Quantity(0, 0, Format.DECIMAL_SI, big=False, text=text)
    match = _TEXT.fullmatch(text)
    if not match or not text or len(text) > TEXT_LENGTH_MAX:
        raise QuantityError(WRONG_FORMAT)
    sign = -1 if match[1] == "-" else 1
    base, exponent, format_ = _interpret(match[5])
    whole, places = match[3].lstrip("0") or "0", match[4] or ""
    small = _parse_small(text, sign, whole, places, base, exponent, format_)
    return small if small is not None else _parse_big(sign, match[2], base, exponent, format_)


@lru_cache(maxsize=65536)
def _milli(text: str) -> int:
    return _parse(text).milli_value()


@lru_cache(maxsize=65536)
def _value(text: str) -> int:
    return _parse(text).value()


def milli(quantity: _HasText | str) -> int:
    """Return the thousandths of a `resource.Quantity` message or a text, cached by text.

    Raises:
        QuantityError: the text is not a quantity.
    """
    return _milli(quantity if isinstance(quantity, str) else quantity.string)


def value(quantity: _HasText | str) -> int:
    """Whole units of a `resource.Quantity` message or a text, rounded up; cached by text. QuantityError."""
    return _value(quantity if isinstance(quantity, str) else quantity.string)
