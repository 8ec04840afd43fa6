"""A second reading of `resource.Quantity` (apimachinery 1.36), step by step with int64s that wrap.

Slow and plain on purpose: `nominee.machinery.resources.quantity` computes in whole numbers and knows at
which edges upstream's machine arithmetic shows; here every step is done as the machine does it, and a test
compares both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

MIN, MAX = -(1 << 63), (1 << 63) - 1
SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
DIGITS = "0123456789"


class Refused(ValueError):
    """Which of upstream's three errors: `format`, `number` or `suffix`."""


def wrapped(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def go_divmod(number: int, divisor: int) -> tuple[int, int]:
    quotient = abs(number) // abs(divisor)
    if (number < 0) != (divisor < 0):
        quotient = -quotient
    return quotient, number - quotient * divisor


def times_power(number: int, power: int) -> tuple[int, bool]:
    """int64: number * 10**power, and whether it fits."""
    if power in (0, 1, 2, 3, 6, 9):
        factor = 10**power
        if number in (0, 1) or power == 0:
            return number * factor, True
        if number == MIN:
            return 0, False
        product = wrapped(number * factor)
        return product, go_divmod(product, factor)[0] == number
    for _ in range(power):
        if number in (0, 1):
            number *= 10
            continue
        product = wrapped(number * 10)
        if number == MIN or go_divmod(product, 10)[0] != number:
            return 0, False
        number = product
    return number, True


def multiplied(a: int, b: int) -> tuple[int, bool]:
    if a in (0, 1) or b in (0, 1):
        return a * b, True
    if MIN in (a, b):
        return 0, False
    product = wrapped(a * b)
    return product, go_divmod(product, b)[0] == a


def added(a: int, b: int) -> tuple[int, bool]:
    total = wrapped(a + b)
    if (a > 0 and b > 0 and total < 0) or (a < 0 and b < 0 and total > 0) or (a == b == MIN):
        return 0, False
    return total, True


def divided_by_power(number: int, power: int) -> tuple[int, bool]:
    """int64: away from zero; whether nothing was lost."""
    value, lost = number, False
    if power == 0:
        return number, True
    for _ in range(power):
        value, rest = go_divmod(value, 10)
        lost = lost or rest != 0
        if value == 0:
            return ((1 if number > 0 else -1), False) if lost else (0, True)
    if lost:
        value += 1 if number > 0 else -1
    return value, not lost


def without_factors(number: int, base: int) -> tuple[int, int]:
    result, times = (wrapped(-number) if number < 0 else number), 0
    while result >= base and result % base == 0:
        result, times = result // base, times + 1
    return (wrapped(-result) if number < 0 else result), times


@dataclass(frozen=True)
class Letter:
    """`value * 10**scale`; an int64 while `small`."""

    value: int
    scale: int
    format: str
    small: bool = True
    kept: str = ""

    @property
    def as_int64(self) -> int | None:
        if not self.small or self.scale < 0:
            return None
        number, fits = times_power(self.value, self.scale)
        return number if fits else None

    def scaled(self, scale: int) -> int:
        if self.small:
            if self.scale < scale:
                return divided_by_power(self.value, scale - self.scale)[0]
            return times_power(self.value, self.scale - scale)[0]
        power = scale - self.scale
        if power == 0:
            return wrapped(self.value)
        if power < 0:
            factor = math.pow(10, -power)
            whole = int(factor) if factor < 2.0**63 else MIN
            return wrapped(wrapped(self.value) * whole)
        if self.value < MAX and power < 19:
            quotient, rest = go_divmod(wrapped(self.value), 10**power)
        else:
            quotient, rest = divmod(self.value, 10**power)
        return wrapped(wrapped(quotient) + 1) if rest else wrapped(quotient)

    def rounded(self, scale: int) -> tuple[Letter, bool]:
        if self.small:
            if self.scale >= scale:
                return self, True
            value, exact = divided_by_power(self.value, scale - self.scale)
            return replace(self, value=value, scale=scale, kept=""), exact
        if self.scale >= scale:
            return replace(self, value=self.value * 10 ** (self.scale - scale), scale=scale, kept=""), True
        quotient, rest = go_divmod(self.value, 10 ** (scale - self.scale))
        if rest:
            quotient += 1 if self.value > 0 else -1
        return replace(self, value=quotient, scale=scale, kept=""), not rest

    def canonical(self) -> str:
        if self.value == 0:
            return "0"
        form = self.format
        if form == "BinarySI":
            whole, exact = self.rounded(0)
            within = self.compare(Letter(-1024, 0, "")) > 0 and self.compare(Letter(1024, 0, "")) < 0
            form = "DecimalSI" if within or not exact else form
            if form == "BinarySI":
                return whole.base_1024()
        number, exponent = self.base_10()
        if form == "DecimalSI":
            names = {power: name for name, power in SUFFIXES.items()}
            return f"{number}{names.get(exponent, '')}"
        return f"{number}e{exponent}" if exponent else str(number)

    def base_1024(self) -> str:
        names = {power: name for name, power in BINARY.items()} | {0: ""}
        number, fits = times_power(self.value, self.scale) if self.small else (self.value, False)
        if fits:
            digits, times = without_factors(number, 1024)
        else:
            digits, times = self.value * 10**self.scale, 0
            while digits % 1024 == 0:
                digits, times = digits // 1024, times + 1
        return f"{digits}{names.get(times * 10, '')}"

    def base_10(self) -> tuple[int, int]:
        digits, exponent = self.value, self.scale
        if self.small:
            digits, times = without_factors(digits, 10)
            exponent += times
            extra = exponent % 3
            scaled, fits = times_power(digits, extra)
            if fits:
                return scaled, exponent - extra
            digits, exponent = self.value, self.scale
        while digits % 10 == 0:
            digits, exponent = digits // 10, exponent + 1
        while exponent % 3:
            digits, exponent = digits * 10, exponent - 1
        return digits, exponent

    def text(self) -> str:
        return self.kept or self.canonical()

    def compare(self, other: Letter) -> int:
        scale = min(self.scale, other.scale)
        mine: int = self.value * 10 ** (self.scale - scale)
        theirs: int = other.value * 10 ** (other.scale - scale)
        return (mine > theirs) - (mine < theirs)

    def plus(self, other: Letter, sign: int = 1) -> Letter:
        form = other.format if self.value == 0 else self.format
        if self.small and other.small:
            theirs = wrapped(sign * other.value)
            if other.value == 0:
                return Letter(self.value, self.scale, form)
            if self.value == 0:
                return Letter(theirs, other.scale, form)
            scale = min(self.scale, other.scale)
            mine, fits = times_power(self.value, self.scale - scale)
            theirs, both = times_power(theirs, other.scale - scale)
            total, sums = added(mine, theirs)
            if fits and both and sums:
                return Letter(total, scale, form)
        scale = min(self.scale, other.scale)
        total = self.value * 10 ** (self.scale - scale) + sign * other.value * 10 ** (other.scale - scale)
        return Letter(total, scale, form, small=False)

    def times(self, factor: int) -> tuple[Letter, bool]:
        product = Letter(self.value * factor, self.scale, self.format, small=False)
        if not self.small:
            return product, MIN <= product.value <= MAX
        if self.value == 0:
            return Letter(0, self.scale, self.format), True
        if factor == 0:
            return Letter(0, 0, self.format), True
        value, fits = multiplied(self.value, factor)
        if fits and self.scale > 0:
            fits = times_power(value, self.scale)[1]
        elif fits and self.scale < 0:
            fits = divided_by_power(value, -self.scale)[1]
        if fits:
            return Letter(value, self.scale, self.format), True
        return product, MIN <= product.value <= MAX

    def negated(self) -> Letter:
        value = wrapped(-self.value) if self.small else -self.value
        return Letter(value, self.scale, self.format, self.small)


def _cut(text: str) -> tuple[bool, str, str, str, str]:
    """Sign, the number's text, digits before and behind the point, suffix."""
    at = 1 if text[0] in "+-" else 0
    while at < len(text) and text[at] == "0":
        at += 1
    if at == len(text):
        return text[0] != "-", "0", "0", "", ""
    begin = at
    while at < len(text) and text[at] in DIGITS:
        at += 1
    whole, places = text[begin:at] or "0", ""
    if at < len(text) and text[at] == ".":
        begin = at + 1
        at = begin
        while at < len(text) and text[at] in DIGITS:
            at += 1
        places = text[begin:at]
    number, begin = text[:at], at
    while at < len(text) and text[at] in "eEinumkKMGTP":
        at += 1
    if at < len(text) and text[at] in "+-":
        at += 1
    while at < len(text) and text[at] in DIGITS:
        at += 1
    if at < len(text):
        raise Refused("format")
    return text[0] != "-", number, whole, places, text[begin:]


def _suffix(suffix: str) -> tuple[int, int, str]:
    if suffix in SUFFIXES:
        return 10, SUFFIXES[suffix], "DecimalSI"
    if suffix in BINARY:
        return 2, BINARY[suffix], "BinarySI"
    if len(suffix) > 1 and suffix[0] in "eE" and suffix[1:].lstrip("+-").isdigit():
        return 10, int(suffix[1:]), "DecimalExponent"
    raise Refused("suffix")


def parse(text: str) -> Letter:
    if not text:
        raise Refused("format")
    if text == "0":
        return Letter(0, 0, "DecimalSI", kept=text)
    positive, number, whole, places, suffix = _cut(text)
    base, exponent, form = _suffix(suffix)
    scale, mantissa = (exponent, 1) if base == 10 else (0, 1 << exponent)
    precision = 18 - len(whole) - len(places)
    if base == 2:
        precision = -1 if places else 15 - len(whole) - int(exponent * 3 / 10) - 1
    if precision >= 0 and scale - len(places) >= -9:
        digits = whole + places
        value, fits = multiplied(int(digits), mantissa)
        if fits:
            scale -= len(places)
            if base == 2:
                keeps = int(digits) & 7 != 0
            else:
                keeps = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
            return Letter(value if positive else -value, scale, form, kept=text if keeps else "")
    plain = number.lstrip("+-")
    if not plain.replace(".", ""):
        raise Refused("number")
    before, _, behind = plain.partition(".")
    value, scale = int(before + behind), -len(behind)
    if base == 10:
        scale += exponent
    else:
        value <<= exponent
    if value:
        value, scale = Letter(value, scale, "", small=False).rounded(-9)[0].value, -9
        if form == "BinarySI" and value > MAX * 10**9:
            value, scale = MAX, 0
        if form == "BinarySI" and scale == -9 and value < 10**9:
            form = "DecimalSI"
    return Letter(value if positive else -value, scale, form, small=False)
