"""What selectors cost at worst: the figures are those of upstream's own estimator (1.36)."""

from __future__ import annotations

import pytest

from nominee.machinery.cel import checked, environment
from nominee.machinery.cel.cost import COST_MAX, MOST, worst_cost
from nominee.machinery.cel.device_selector import compile_selector
from nominee.machinery.cel.errors import CostError

MINE, ROOM = 'device.attributes["dra.example.com"]', 'device.capacity["dra.example.com"]'
TEN = str(list(range(10)))


def cost(expression: str, *, list_attributes: bool = False) -> int:
    compiled = environment.checking(list_attributes=list_attributes, multiple_allocations=True).compile(
        expression
    )
    return worst_cost(checked.read(compiled.serialize()), list_attributes=list_attributes)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true", 0),
        ('device.driver == ""', 2),
        ('device.driver == "dra.example.com"', 4),
        ("device.allowMultipleAllocations == true", 3),
        ('"no-such-domain" in device.attributes', 3),
        (f"{MINE}.name", 4),
        (f'{MINE}["name"]', 4),
        (f"{MINE}.name > 0", 5),
        (f'{MINE}.name == "fish"', 5),
        (f'{MINE}.name.isGreaterThan(semver("0.0.1"))', 6),
        (f"cel.bind(dra, {MINE}, dra.name)", 15),
        (f'"name" in {ROOM} && {ROOM}.name.isGreaterThan(quantity("1Ki"))', 10),
        (f'!("name" in {ROOM}) || {ROOM}.name.isGreaterThan(quantity("1Ki"))', 11),
        (f"{MINE}.a && {MINE}.b && {MINE}.c", 12),
        ('device.attributes.exists_one(x, x == "dra.example.com")', 164),
        (f'{ROOM}.exists_one(x, x == "memory")', 133),
        (f'{MINE}.services.split("example").size() >= 2', 19),
        (f'{MINE}.services.matches("[^a]?sym")', 18),
    ],
)
def test_what_selectors_cost(expression: str, expected: int) -> None:
    assert cost(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f"{MINE}.name.exists(x, x > 0)", 5 + 6 * 64),
        (f'{MINE}.name.exists(x, x.isGreaterThan(semver("0.0.1")))', 5 + 7 * 64),
        (f'{MINE}.name.includes(semver("1.0.0"))', 53),
    ],
)
def test_what_looking_into_lists_costs(expression: str, expected: int) -> None:
    assert cost(expression, list_attributes=True) == expected


def test_loops_in_loops_cost_what_they_do_together() -> None:
    expression, costs = "'a' < 'b'", [1]
    for name in "abcdefg":
        expression = f"{TEN}.all({name}, {expression})"
        # The list, ten times the condition (2) and the step (1 and the inner loop), the result.
        costs.append(10 + 10 * (2 + 1 + costs[-1]) + 1)
        assert cost(expression) == costs[-1]
    assert costs[-1] > COST_MAX
    with pytest.raises(CostError, match="too complex, exceeds cost limit"):
        compile_selector(expression)


@pytest.mark.parametrize(
    ("expression", "least", "most"),
    [
        ('"a".replace("", "bcd") == "x"', 2, 3),
        ('"abc".lowerAscii().startsWith("a")', 2, 2),
        (f'{TEN}.map(x, string(x)).join(",") != ""', 100, MOST),
        ("[1, 2].map(x, x * 2) == [2, 4]", 60, MOST),
        ('{"a": [1]}["a"].size() == 1', 40, 60),
        ('(true ? "abc" : "de").contains("a")', 1, 2),
        ('"abc" + "de" == "abcde"', 2, 2),
        ("[1] + [2, 3] == [1, 2, 3]", 31, 33),
        ("2 in [1, 2, 3]", 13, 13),
        ('bytes("ab") == b"ab"', 2, 2),
        ('string(b"ab") == "ab"', 2, 2),
        (f"has({MINE}.name)", 4, 4),
        (f'{MINE}.?name.orValue("z") == "z"', 6, MOST),
        (f"{ROOM}.name == quantity('1Gi')", 6, 6),
        (f"type({MINE}.name) == int", 6, 8),
        ("dyn(device.driver) == 'x'", 4, 4),
    ],
)
def test_costs_of_functions(expression: str, least: int, most: int) -> None:
    assert least <= cost(expression) <= most


def test_what_grows_costs_more_and_more() -> None:
    growing = "".join(f"cel.bind(v{n + 1}, v{n} + v{n}, " for n in range(28))
    assert cost(f'cel.bind(v0, "xxxxxxxx", {growing} size(v28) > 0' + ")" * 29) > COST_MAX
