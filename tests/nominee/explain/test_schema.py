"""The published JSON Schema, the tables in docs/explain.md and the output agree."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator, ValidationError

from nominee.commands.objects.explain import explain
from nominee.explain import schema

PAGE = Path(__file__).parents[3] / "docs" / "explain.md"
WRITE = "write it again with `python -m nominee.explain.schema`"


def _closed(document: dict[str, Any]) -> dict[str, Any]:
    """Return the schema, but refusing fields that it does not name: the command prints none."""
    closed = copy.deepcopy(document)
    for definition in closed["$defs"].values():
        definition["additionalProperties"] = False
    return closed


VALIDATOR = Draft202012Validator(_closed(schema.schema()))


def test_the_published_schema_is_generated() -> None:
    assert json.loads(schema.SCHEMA_FILE.read_text()) == schema.schema(), WRITE


def test_the_published_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(schema.schema())


def test_the_tables_of_the_documentation_are_generated() -> None:
    page = PAGE.read_text()
    assert schema.with_tables(page) == page, WRITE
    assert schema.tables() in page


def test_the_command_prints_the_published_schema() -> None:
    answer = CliRunner().invoke(explain, ["--schema"])
    assert answer.exit_code == 0, answer.output
    assert answer.stdout == schema.SCHEMA_FILE.read_text()


@pytest.mark.parametrize("change", [{"kind": "Pod"}, {"selected": []}, {"items": [{}]}, {"apiVersion": "v1"}])
def test_other_documents_are_refused(change: dict[str, Any]) -> None:
    document = {"apiVersion": "explain.nominee.dev/v1", "kind": "PodExplanationList", "items": []}
    VALIDATOR.validate(document)
    with pytest.raises(ValidationError):
        VALIDATOR.validate({**document, **change})
