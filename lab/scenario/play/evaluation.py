"""Decide whether values and objects have the properties that a condition states. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nominee.lab.scenario.format import paths
from nominee.lab.scenario.format.condition import Comparison, EventCondition, ObjectCondition
from nominee.machinery.resources.quantity import Quantity, QuantityError
from nominee.machinery.wire.scalars import Json

_SHOWN_MAX = 5
_TEXT_MAX = 300

JsonObject = Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The evaluation of a condition: what was observed, and the first object that has all properties."""

    holds: bool
    text: str
    found: JsonObject | None = None


def shown(value: Json) -> str:
    """Return a value as text for a message."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}..."


def matches(comparison: Comparison, values: Sequence[Json]) -> bool:
    """Return whether the values at a path compare as stated: one of them for a value, none for `not`."""
    present = [value for value in values if value not in (None, "", [], {})]
    if comparison.present is not None and bool(present) != comparison.present:
        return False
    if comparison.has_equal and not _equals(comparison.equal, present, values):
        return False
    if comparison.has_unequal and _equals(comparison.unequal, present, values):
        return False
    texts = [_text(value) for value in present]
    if comparison.contains and not any(comparison.contains in text for text in texts):
        return False
    if comparison.matches and not any(re.search(comparison.matches, text) for text in texts):
        return False
    if comparison.one_of and not any(_equals(each, present, values) for each in comparison.one_of):
        return False
    if comparison.quantity and not any(_same_quantity(comparison.quantity, text) for text in texts):
        return False
    return _within(comparison, values)


def _within(comparison: Comparison, values: Sequence[Json]) -> bool:
    if comparison.at_least is None and comparison.at_most is None:
        return True
    for value in values:
        try:
            number = float(value)
        except (TypeError, ValueError):
            continue
        if comparison.at_least is not None and number < comparison.at_least:
            continue
        if comparison.at_most is None or number <= comparison.at_most:
            return True
    return False


def _equals(wanted: Json, present: Sequence[Json], values: Sequence[Json]) -> bool:
    if wanted is None or wanted == "":
        return not present
    return any(value == wanted or _text(value) == _text(wanted) for value in values)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _same_quantity(wanted: str, text: str) -> bool:
    try:
        return Quantity.parse(wanted) == Quantity.parse(text)
    except QuantityError:
        return False


def described(comparison: Comparison) -> str:
    """Return a comparison as the end of a sentence: `= Running`, `contains "x"`."""
    parts = []
    if comparison.has_equal:
        parts.append("is unset" if comparison.equal in (None, "") else f"= {shown(comparison.equal)}")
    if comparison.has_unequal:
        unset = comparison.unequal in (None, "")
        parts.append("is set" if unset else f"is not {shown(comparison.unequal)}")
    if comparison.contains:
        parts.append(f"contains {comparison.contains!r}")
    if comparison.matches:
        parts.append(f"matches {comparison.matches!r}")
    if comparison.one_of:
        parts.append(f"is one of {', '.join(map(shown, comparison.one_of))}")
    if comparison.quantity:
        parts.append(f"= {comparison.quantity}")
    if comparison.at_least is not None:
        parts.append(f">= {comparison.at_least:g}")
    if comparison.at_most is not None:
        parts.append(f"<= {comparison.at_most:g}")
    if comparison.present is not None:
        parts.append("is set" if comparison.present else "is unset")
    return " and ".join(parts)


def evaluate_objects(condition: ObjectCondition, objects: Sequence[JsonObject]) -> Observed:
    """Evaluate a condition on the objects that its name or selector chooses."""
    found = [each for each in objects if not unmet(condition, each)]
    count = condition.count or Comparison(at_least=1)
    holds = matches(count, [len(found)])
    first = found[0] if found else None
    if not objects:
        return Observed(holds=holds, text="there is no such object")
    if not condition.conditions and not condition.json_path:
        text = f"{len(objects)} exist" if condition.count is not None else "it exists"
        return Observed(holds=holds, text=text, found=first)
    lines = [f"{name_of(each)}: {_state(condition, each)}" for each in objects[:_SHOWN_MAX]]
    if len(objects) > _SHOWN_MAX:
        lines.append(f"... {len(objects)} objects, of which {len(found)} match")
    return Observed(holds=holds, text="; ".join(lines), found=first)


def unmet(condition: ObjectCondition, document: JsonObject) -> list[str]:
    """Return the properties that an object does not have, with what it has instead."""
    problems = []
    for text in condition.conditions:
        actual = _status_condition(text, document)
        if not actual[0]:
            problems.append(actual[1])
    for path, comparison in condition.json_path.items():
        values = paths.find(path, document)
        if not matches(comparison, values):
            problems.append(_value_text(path, values))
    return problems


def _state(condition: ObjectCondition, document: JsonObject) -> str:
    """Return the present values of everything that the condition names."""
    texts = [_status_condition(text, document)[1] for text in condition.conditions]
    texts += [_value_text(path, paths.find(path, document)) for path in condition.json_path]
    return ", ".join(texts)


def _value_text(path: str, values: Sequence[Json]) -> str:
    if not values or values == [""]:
        return f"{path} is unset"
    return f"{path} = {', '.join(map(shown, values))}"


def _status_condition(text: str, document: JsonObject) -> tuple[bool, str]:
    """Return whether an object has a condition TYPE=STATUS/REASON (or not: !TYPE), and its present state."""
    absent, name = text.startswith("!"), text.lstrip("!")
    name, _, wanted = name.partition("=")
    status, _, reason = wanted.partition("/")
    conditions: Sequence[JsonObject] = document.get("status", {}).get("conditions") or ()
    found = next((each for each in conditions if each.get("type") == name), None)
    if found is None:
        return absent, f"no condition {name}"
    actual = f"{name}={found.get('status', '')}"
    if found.get("reason"):
        actual += f"/{found['reason']}"
    if found.get("message"):
        actual += f" ({shown(found['message'])})"
    if absent:
        return False, actual
    return found.get("status") == status and (not reason or found.get("reason") == reason), actual


def evaluate_events(condition: EventCondition, events: Sequence[JsonObject]) -> Observed:
    """Evaluate a condition on events (core/v1), counted with their repetitions."""
    about = [event for event in events if _is_about(condition, event)]
    found = [event for event in about if _has(condition, event)]
    total = sum(_repetitions(event) for event in found)
    holds = matches(condition.count or Comparison(at_least=1), [total])
    listed = "; ".join(
        f"{event.get('reason')}: {shown(event.get('message', ''))}"
        for event in (found or about)[-_SHOWN_MAX:]
    )
    return Observed(holds=holds, text=listed or "there is no such event", found=found[0] if found else None)


def _is_about(condition: EventCondition, event: JsonObject) -> bool:
    involved = event.get("involvedObject", {})
    return all(
        not wanted or involved.get(key) == wanted
        for key, wanted in (
            ("kind", condition.kind),
            ("name", condition.name),
            ("namespace", condition.namespace),
        )
    )


def _has(condition: EventCondition, event: JsonObject) -> bool:
    component = (event.get("reportingComponent"), event.get("source", {}).get("component"))
    if condition.reason and event.get("reason") != condition.reason:
        return False
    if condition.type and event.get("type") != condition.type:
        return False
    if condition.component and condition.component not in component:
        return False
    return condition.message is None or matches(condition.message, [event.get("message", "")])


def _repetitions(event: JsonObject) -> int:
    series = event.get("series") or {}
    return int(event.get("count") or series.get("count") or 1)


def name_of(document: JsonObject) -> str:
    """Return `pod default/web` for a JSON object."""
    metadata = document.get("metadata", {})
    namespace = metadata.get("namespace", "")
    name = metadata.get("name", "")
    return (
        f"{str(document.get('kind', '')).lower()} {namespace}/{name}"
        if namespace
        else f"{str(document.get('kind', '')).lower()} {name}"
    )
