"""Variables in the texts of a step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nominee.lab.scenario.fields.substitution import escaped, substituted, used

_TEXTS = st.text(alphabet="${}NAMEx ", max_size=20)


def test_known_variables_are_replaced_and_others_stay() -> None:
    value = {"a": ["${NODE}", "x${NODE}y", "${OTHER}"], "${NODE}": 1}
    assert substituted(value, {"NODE": "n1"}) == {"a": ["n1", "xn1y", "${OTHER}"], "n1": 1}


@pytest.mark.parametrize(
    ("text", "names", "result"),
    [
        ("$${NODE}", [], "${NODE}"),
        ("$$${NODE}", [], "$${NODE}"),
        ("$${a.b} ${NODE}", ["NODE"], "${a.b} n1"),
        ("$NODE ${", [], "$NODE ${"),
    ],
)
def test_two_dollars_are_no_variable(text: str, names: list[str], result: str) -> None:
    assert used(text) == names
    assert substituted(text, {"NODE": "n1", "a.b": "wrong"}) == result


@given(_TEXTS)
def test_an_escaped_text_stays_as_it_was(text: str) -> None:
    assert used(escaped(text)) == []
    assert substituted(escaped(text), {"NAME": "replaced", "": "replaced"}) == text
