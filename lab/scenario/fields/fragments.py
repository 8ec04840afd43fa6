"""Parts of the JSON Schema that several steps and conditions have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nominee.machinery.wire.values.scalars import Json

Fragment = Mapping[str, Json]
"""A JSON Schema (draft 2020-12) of one field."""

SECONDS_MAX: Final = 3600
TEXT: Final[Fragment] = {"type": "string"}
FLAG: Final[Fragment] = {"type": "boolean"}
COMPONENT: Final[Fragment] = {"$ref": "#/$defs/componentName"}
VERSION: Final[Fragment] = {"$ref": "#/$defs/version"}
GATES: Final[Fragment] = {"$ref": "#/$defs/gates"}
COMPARISON: Final[Fragment] = {"$ref": "#/$defs/comparison"}
COUNT: Final[Fragment] = {"$ref": "#/$defs/count"}
JSON_PATH: Final[Fragment] = {"$ref": "#/$defs/jsonPath"}
CONDITION: Final[Fragment] = {"$ref": "#/$defs/condition"}
SELECTOR: Final[Fragment] = {"type": "string", "description": "A label selector, instead of a name."}


def text(description: str) -> Fragment:
    """Return a text with a description."""
    return {"type": "string", "description": description}


def flag(description: str) -> Fragment:
    """Return true or false with a description."""
    return {"type": "boolean", "description": description}


def one_of(*values: str) -> Fragment:
    """Return one of these texts."""
    return {"enum": list(values)}


def seconds(description: str) -> Fragment:
    """Return a duration, more than 0 and at most an hour."""
    return {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": SECONDS_MAX,
        "description": description,
    }


def mapping(
    description: str, properties: Mapping[str, Fragment], *, required: Sequence[str] = ()
) -> dict[str, Json]:
    """Return a mapping that has only these fields; without required ones it must have at least one."""
    found: dict[str, Json] = {
        "type": "object",
        "description": description,
        "additionalProperties": False,
        "properties": dict(properties),
    }
    return found | ({"required": list(required)} if required else {"minProperties": 1})


def of_component(description: str, options: Mapping[str, Fragment], *, inner: str = "") -> dict[str, Json]:
    """Return a component's name, or a mapping of the name and options; `inner` describes the mapping."""
    fields = mapping(inner or description, {"component": COMPONENT, **options}, required=["component"])
    return {"description": description, "anyOf": [COMPONENT, fields]}
