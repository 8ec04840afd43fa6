from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nominee.machinery.api.pb import resource
from nominee.machinery.resources import quantity
from nominee.machinery.resources.quantity import Format, Quantity, QuantityError
from tests.support.recordings import read

CASES = read("quantity.jsonl")


def describe(q: Quantity) -> dict[str, Any]:
    """Return a quantity in the recorded form."""
    as_int64 = q.as_int64()
    return {
        "asInt64": None if as_int64 is None else str(as_int64),
        "canonical": q.canonical(),
        "decimal": q.decimal(),
        "float": q.approximate_float(),
        "format": q.format.value,
        "milliValue": str(q.milli_value()),
        "sign": q.sign,
        "string": str(q),
        "value": str(q.value()),
    }


def perform(case: dict[str, Any]) -> dict[str, Any]:
    """Do what a recorded case did; return the outcome in the recorded form."""
    match case["op"]:
        case "parse":
            q = Quantity.parse(case["a"])
            again = Quantity.parse(q.canonical())
            # The recording says where the canonical text means another number.
            return describe(q) | ({} if again == q else {"reparse": f"differs: {again.canonical()}"})
        case "json":
            q = Quantity.parse_json(case["a"])
            return describe(q) | {"json": f'"{q}"'}
        case "add":
            return describe(Quantity.parse(case["a"]) + Quantity.parse(case["b"]))
        case "sub":
            return describe(Quantity.parse(case["a"]) - Quantity.parse(case["b"]))
        case "neg":
            return describe(-Quantity.parse(case["a"]))
        case "cmp":
            a, b = Quantity.parse(case["a"]), Quantity.parse(case["b"])
            return {"cmp": a.compare(b), "equal": a == b}
        case "mul":
            q, ok = Quantity.parse(case["a"]).multiplied(case["n"])
            return describe(q) | {"ok": ok}
        case "roundUp":
            q, exact = Quantity.parse(case["a"]).round_up(case["n"])
            return describe(q) | {"exact": exact}
        case "scaled":
            return {"scaledValue": str(Quantity.parse(case["a"]).scaled_value(case["n"]))}
        case "new":
            return describe(Quantity.of(case["n"], Format(case["a"])))
        case "newMilli":
            return describe(Quantity.of_milli(case["n"], Format(case["a"])))
    raise AssertionError(f"unknown op {case['op']}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_golden(case: dict[str, Any]) -> None:
    try:
        got = perform(case)
    except QuantityError as error:
        got = {"error": str(error)}
    want = dict(case["expect"])
    if "float" in want:
        want["float"] = pytest.approx(float(want["float"]), rel=1e-14)
    assert got == want


def test_the_sum_of_null_and_a_number_has_the_format_of_the_number() -> None:
    null = Quantity.parse_json("null")
    assert (null + null).format is Format.UNSET
    assert str(null + Quantity.parse("1Ki")) == str(Quantity.parse("1Ki") + null) == "1Ki"
    assert str(Quantity.of(1000, null.format)) == "1e3"


@pytest.mark.parametrize("text", ["1e99999999999", "1e5000", "1e-5000", "9" * 5000])
def test_what_would_fill_the_memory_is_refused(text: str) -> None:
    with pytest.raises(QuantityError):
        Quantity.parse(text)


def test_messages_and_texts_are_read_alike() -> None:
    assert quantity.milli("1500m") == quantity.milli(resource.Quantity(string="1500m")) == 1500
    assert quantity.value("2Gi") == quantity.value(resource.Quantity(string="2Gi")) == 2 << 30
    assert quantity.value("1500m") == 2, "rounded up"
    with pytest.raises(QuantityError):
        quantity.milli("")


def test_equal_quantities_hash_alike() -> None:
    assert len({Quantity.parse(text) for text in ("1", "1000m", "1e0", "1.0", "+1")}) == 1


numbers = st.integers(-(10**17), 10**17)
suffixes = st.sampled_from(["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "Ti", "e3", "e-3"])
quantities = st.builds(lambda n, s: Quantity.parse(f"{n}{s}"), numbers, suffixes)


@given(quantities)
def test_canonical_text_means_the_same(q: Quantity) -> None:
    again = Quantity.parse(q.canonical())
    # A binary number beyond int64 is capped when read, so only smaller ones come back.
    if -Quantity.of(1 << 62) < q < Quantity.of(1 << 62):
        assert again == q
        assert again.canonical() == q.canonical() or q.format is Format.BINARY_SI


@given(quantities, quantities, quantities)
def test_arithmetic_is_exact(a: Quantity, b: Quantity, c: Quantity) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert (a + b) - b == a
    assert (a < b) == ((a - b).sign < 0)
    assert -(a - b) == b - a


@given(st.integers(-(10**12), 10**12))
def test_rounding_up(n: int) -> None:
    assert Quantity.of_milli(n).milli_value() == n
    away = -(-abs(n) // 1000)
    assert Quantity.of_milli(n).value() == (away if n >= 0 else -away)
