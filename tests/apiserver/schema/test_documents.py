"""YAML bodies as Go reads them: numbers, and words for what is no YAML."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.apiserver.schema.documents import SyntaxProblem, parse_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000), ("2.0", 2), ("0.5", 0.5), (".5", 0.5), ("010", 8), ("0x10", 16), ("1_000", 1000),
        ("12:30", "12:30"), ("2024-01-01", "2024-01-01"), ("100m", "100m"), ("1.2.3", "1.2.3"),
        ("'1'", "1"), ("yes", True), ("~", None),
    ],
)  # fmt: skip
def test_values(text: str, value: Any) -> None:
    found = parse_yaml(f"a: {text}\n").value["a"]
    assert (found, type(found) is bool) == (value, type(value) is bool)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: b: c\n", "mapping values are not allowed in this context"),
        ("a: 1\nb: c: d\n", "line 2: mapping values are not allowed in this context"),
        ("a:\n  - b\n c: d\n", "line 2: did not find expected key"),
        ("a: 1\n\tb: 2\n", "line 2: found a tab character that violates indentation"),
        ("a: 1\nb: *x-y\n", "unknown anchor 'x-y' referenced"),
    ],
)
def test_problems(text: str, problem: str) -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_yaml(text)
    assert str(caught.value) == f"yaml: {problem}"
