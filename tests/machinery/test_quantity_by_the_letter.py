"""Quantities against a second reading of upstream's, over texts of every shape and at every edge."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from nominee.machinery.resources.quantity import Format, Quantity, QuantityError
from tests.machinery import quantity_by_the_letter as letter
from tests.machinery.quantity_by_the_letter import MAX, MIN, Letter, Refused

SUFFIXES = [*letter.SUFFIXES, *letter.BINARY, "e0", "e3", "E3", "e-3", "e+6", "e1", "e-7", "e20", "e-12"]
NUMBERS = [
    *("0", "00", "007", "1", "5", "8", "9", "10", "16", "100", "999", "1000", "1001", "1023", "1024"),
    *("1025", "1500", "2048", "1048576", "123456789", "999999999999999", "1000000000000000000"),
    *("999999999999999999", "9223372036854775807", "9223372036854775808", "99999999999999999999999"),
    *("0.1", "0.5", "1.5", "1.", ".5", "0.001", "1.0001", "0.000000001", "0.0000000001", "100.100"),
    *("1.000", "123.456789", "9007199254740993", "0.999999999999999999", "1.23456789012345678", "."),
]
WRONG = [
    "",
    "+",
    "-",
    "e",
    "1e",
    "1ee3",
    "1e+",
    "1e--3",
    "1KiB",
    "1K",
    "1ki",
    "1mm",
    "1 ",
    " 1",
    "1.2.3",
    "0x1",
]
POWERS = [-12, -9, -6, -3, -1, 0, 1, 3, 6, 9, 12, 18, 21]
FACTORS = [0, 1, -1, 2, 3, 10, 1000, 1024, 10**9, MAX, MIN, -7]


def texts() -> Iterator[str]:
    yield from WRONG
    for number in NUMBERS:
        for sign in ("", "-", "+"):
            for suffix in SUFFIXES:
                yield f"{sign}{number}{suffix}"


def random_texts(count: int) -> Iterator[str]:
    rng = random.Random(7)
    for _ in range(count):
        whole = "".join(rng.choices("0123456789", (9, 1, 1, 1, 1, 2, 1, 1, 1, 1), k=rng.randint(0, 21)))
        places = "." + "".join(rng.choices("0159", k=rng.randint(0, 14))) if rng.random() < 0.4 else ""
        yield rng.choice(("", "", "-", "+")) + whole + places + rng.choice(SUFFIXES)


def described(it: Quantity | Letter) -> dict[str, Any]:
    if isinstance(it, Quantity):
        scaled = [it.scaled_value(power) for power in POWERS]
        return {
            "text": str(it),
            "canonical": it.canonical(),
            "format": it.format.value,
            "int64": it.as_int64(),
            "scaled": scaled,
        }
    return {
        "text": it.text(),
        "canonical": it.canonical(),
        "format": it.format,
        "int64": it.as_int64,
        "scaled": [it.scaled(power) for power in POWERS],
    }


def read(text: str) -> tuple[Quantity, Letter] | None:
    """By both; None when both refuse it."""
    try:
        ours = Quantity.parse(text)
    except QuantityError:
        with pytest.raises(Refused):
            letter.parse(text)
        return None
    return ours, letter.parse(text)


def check(what: str, ours: Quantity, theirs: Letter) -> None:
    assert described(ours) == described(theirs), what


def test_every_shape_of_text() -> None:
    for text in texts():
        if found := read(text):
            check(text, *found)


def test_texts_at_random() -> None:
    for text in random_texts(2_000):
        if found := read(text):
            check(text, *found)


def test_whole_numbers_of_every_format() -> None:
    for form in Format:
        for number in (
            0,
            1,
            -1,
            7,
            1000,
            1024,
            -2048,
            1 << 40,
            -(1 << 62),
            10**18,
            MAX,
            MAX - 7,
            MIN + 1,
            MIN,
        ):
            check(f"{form} {number}", Quantity.of(number, form), Letter(number, 0, form.value))
            check(f"{form} {number}m", Quantity.of_milli(number, form), Letter(number, -3, form.value))


def test_operations_at_random() -> None:
    rng = random.Random(11)
    parsed = [found for text in random_texts(700) if (found := read(text))]
    parsed += [found for text in texts() if (found := read(text)) and rng.random() < 0.15]
    for (a, a_letter), (b, b_letter) in zip(parsed, rng.sample(parsed, len(parsed)), strict=True):
        what = f"{a!r} {b!r}"
        check(f"{what} +", a + b, a_letter.plus(b_letter))
        check(f"{what} -", a - b, a_letter.plus(b_letter, -1))
        check(f"{what} neg", -a, a_letter.negated())
        assert a.compare(b) == a_letter.compare(b_letter), what
        power, factor = rng.choice(POWERS), rng.choice(FACTORS)
        rounded, exact = a.round_up(power)
        rounded_letter, exact_letter = a_letter.rounded(power)
        check(f"{what} round {power}", rounded, rounded_letter)
        assert exact == exact_letter, what
        product, fits = a.multiplied(factor)
        product_letter, fits_letter = a_letter.times(factor)
        check(f"{what} * {factor}", product, product_letter)
        assert fits == fits_letter, what
