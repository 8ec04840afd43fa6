"""The variants of a scenario: sets of variables, for each of which it is played and measured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from nominee.lab.scenario.fields.substitution import used, with_texts
from nominee.lab.scenario.format.documents import Document, Path
from nominee.machinery.wire.values.scalars import Json

Variant = Mapping[str, Json]
"""Values by variable: texts or numbers."""

_WHOLE = re.compile(r"\$\{([^}]*)\}")


def variants_of(spec: Mapping[str, Json]) -> Sequence[Variant]:
    """Return the variants of a scenario's `spec`."""
    variants: Sequence[Variant] = spec.get("variants", ())
    return variants


def uses(value: Json, variants: Sequence[Variant]) -> bool:
    """Return whether a value has a variable of the variants."""
    names = {name for variant in variants for name in variant}
    return not names.isdisjoint(used(value))


def fill(value: Json, variant: Variant) -> Json:
    """Return a value with the variables of a variant; a text that is one variable becomes its value.

    Other variables, and `$${NAME}`, stay as they are.
    """

    def filled(text: str) -> Json:
        whole = _WHOLE.fullmatch(text)
        if whole is not None:
            return variant.get(whole[1], text)
        return re.sub(r"\$?\$\{([^}]*)\}", lambda match: _text(match, variant), text)

    return with_texts(value, filled)


def _text(match: re.Match[str], variant: Variant) -> str:
    is_escaped = match[0].startswith("$$")
    return match[0] if is_escaped else str(variant.get(match[1], match[0]))


def expand(document: Document) -> Document:
    """Return a document in which a step with variables of the variants has a copy for each of them.

    Copies that are equal stand once. A document that the schema will not accept is returned as it is.
    """
    value = document.value
    spec = value.get("spec") if isinstance(value, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(spec.get("steps"), list):
        return document
    variants = spec.get("variants")
    if not isinstance(variants, list) or not all(isinstance(each, Mapping) for each in variants):
        return document
    steps: list[Json] = []
    origins: list[int] = []
    lines: dict[Path, int] = {
        path: line for path, line in document.lines.items() if path[:2] != ("spec", "steps") or len(path) == 2
    }
    for index, step in enumerate(spec["steps"]):
        own = {
            path[3:]: line for path, line in document.lines.items() if path[:3] == ("spec", "steps", index)
        }
        copies: list[Json] = []
        for variant in variants if uses(step, variants) else ({},):
            copy = fill(step, variant)
            if copy not in copies:
                copies.append(copy)
        for copy in copies:
            lines |= {("spec", "steps", len(steps), *below): line for below, line in own.items()}
            steps.append(copy)
            origins.append(index)
    whole = {**value, "spec": {**spec, "steps": steps}}
    return replace(document, value=whole, lines=lines, origins=tuple(origins))
