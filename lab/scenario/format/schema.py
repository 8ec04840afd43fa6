"""The published JSON Schema, and its errors as messages that name the field and the remedy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nominee.lab.scenario.conditions.table import CONDITIONS
from nominee.lab.scenario.fields.names import near
from nominee.lab.scenario.format.documents import Document, Problem
from nominee.lab.scenario.format.documents import Path as FieldPath
from nominee.lab.scenario.measures.table import MEASURES
from nominee.lab.scenario.steps.table import VERBS
from nominee.machinery.wire.values.scalars import Json, json_type

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

SCHEMA_FILE: Final = Path(__file__).with_name("scenario.v1alpha1.schema.json")
_OF_STEPS: Final = ("name", "save", "rejected")
"""Fields of a step beside its verb."""


@cache
def _published() -> Mapping[str, Json]:
    document: Mapping[str, Json] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return document


def schema() -> Mapping[str, Json]:
    """Return the JSON Schema of a scenario (draft 2020-12).

    The parts for steps, conditions and measures come from the tables of these, the others from the published
    file.
    """
    published = _published()
    definitions: dict[str, Json] = dict(published["$defs"])
    for kind in CONDITIONS.values():
        definitions |= kind.definitions()
    for action in VERBS.values():
        definitions |= action.definitions()
    conditions = {key: each.schema() for key, each in CONDITIONS.items()}
    definitions["condition"] = {**definitions["condition"], "properties": conditions}
    measures = {key: each.schema() for key, each in MEASURES.items()}
    definitions["measured"] = {**definitions["measured"], "properties": measures}
    step = definitions["step"]
    fields = {name: step["properties"][name] for name in _OF_STEPS}
    verbs = {verb: each.schema() for verb, each in VERBS.items()}
    definitions["step"] = {**step, "properties": fields | verbs}
    return {**published, "$defs": definitions}


def text() -> str:
    """Return the JSON Schema as the published file has it."""
    return json.dumps(schema(), indent=2) + "\n"


def check(document: Document, *, definition: str = "") -> list[Problem]:
    """Return the mistakes in a document, by line; `definition` checks it as a part of a scenario."""
    whole = schema()
    rules = {"$ref": f"#/$defs/{definition}", "$defs": whole["$defs"]} if definition else whole
    return check_with(rules, document)


def check_with(rules: Mapping[str, Json], document: Document) -> list[Problem]:
    """Return what a JSON Schema (draft 2020-12) does not accept in a document, by line."""
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(rules)
    problems = {
        document.problem(path, message)
        for error in validator.iter_errors(document.value)
        for path, message in _messages(error)
    }
    return sorted(problems, key=lambda problem: (problem.line, problem.field, problem.message))


def _messages(error: ValidationError) -> Iterator[tuple[FieldPath, str]]:
    path: FieldPath = tuple(error.absolute_path)
    match error.validator:
        case "additionalProperties" if isinstance(error.validator_value, bool):
            known = tuple(error.schema.get("properties", {}))
            for name in error.instance:
                if name not in known:
                    yield (*path, str(name)), f"unknown field{near(str(name), known)}"
        case "required":
            missing = [name for name in error.validator_value if name not in error.instance]
            yield path, f"the field {missing[0]} is missing"
        case "type":
            wanted = error.validator_value
            names = wanted if isinstance(wanted, list) else [wanted]
            yield path, f"expected {_either(names)}, got {json_type(error.instance)}"
        case "enum":
            known = tuple(map(str, error.validator_value))
            yield path, f"{error.instance!r} is not possible{near(str(error.instance), known)}"
        case "const":
            yield path, f"expected {error.validator_value}, got {error.instance!r}"
        case "anyOf":
            yield from _best(error)
        case "minItems" if error.validator_value > 1:
            yield path, f"needs at least {error.validator_value} items"
        case "minProperties" | "minItems":
            yield path, "must not be empty"
        case "pattern":
            yield path, f"{error.instance!r} does not match {error.validator_value}"
        case _:
            yield path, error.message


def _best(error: ValidationError) -> Iterator[tuple[FieldPath, str]]:
    """Yield the messages of the alternative that was meant: the one of the value's type, if one is."""
    by_branch: dict[int, list[ValidationError]] = {}
    for each in error.context or ():
        by_branch.setdefault(int(each.relative_schema_path[0]), []).append(each)
    fitting = [
        errors
        for errors in by_branch.values()
        if not any(each.validator == "type" and not each.relative_path for each in errors)
    ]
    if fitting:
        for each in fitting[0]:
            yield from _messages(each)
        return
    wanted: list[str] = []
    for errors in by_branch.values():
        for each in errors:
            value = each.validator_value
            wanted += value if isinstance(value, list) else [value]
    path: FieldPath = tuple(error.absolute_path)
    yield path, f"expected {_either(wanted)}, got {json_type(error.instance)}"


def _either(names: Sequence[str]) -> str:
    found = list(dict.fromkeys(map(str, names)))
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} or {found[-1]}"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(text(), encoding="utf-8")
