"""JSON and YAML bodies as documents: limits, Go's wording of syntax errors, duplicate keys.

The C parser reads the text first; only a text that it refuses is scanned again for Go's error message.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

DEPTH_MAX = 200
_YAML_NODES_MAX = 200_000


class SyntaxProblem(ValueError):
    """A text that is not JSON or YAML; the message is Go's."""


class Literal(float):
    """A number that was not written as a plain integer; it keeps its text for messages."""

    text: str

    def __new__(cls, text: str) -> Literal:
        made = super().__new__(cls, text)
        made.text = text
        return made

    def __repr__(self) -> str:
        return self.text


class _Twice(dict[str, Any]):
    """An object with duplicate keys; the last value counts."""

    keys_twice: list[str]


@dataclass(slots=True)
class Document:
    """A parsed body; `duplicates` are the strict errors of duplicate keys, in the order of the text."""

    value: Any
    duplicates: list[str] = field(default_factory=list)


def parse_json(text: str) -> Document:
    """Parse a JSON document.

    Raises: SyntaxProblem.
    """
    found: list[_Twice] = []

    def make(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) == len(pairs):
            return made
        # A duplicate key moves to its last position, where Go detects it.
        twice = _Twice()
        twice.keys_twice = []
        for key, inner in pairs:
            if key in twice:
                del twice[key]
                if key not in twice.keys_twice:
                    twice.keys_twice.append(key)
            twice[key] = inner
        found.append(twice)
        return twice

    def constant(name: str) -> Any:
        raise ValueError(name)

    try:
        value = json.loads(text, object_pairs_hook=make, parse_float=Literal, parse_constant=constant)
    except RecursionError:
        raise SyntaxProblem("exceeded max depth") from None
    except ValueError:
        raise SyntaxProblem(json_problem(text)) from None
    _check_depth(value)
    if "\\ud" in text or "\\uD" in text:
        value = _without_surrogates(value)
    duplicates: list[str] = []
    if found:
        _duplicates(value, "", duplicates)
    return Document(value, duplicates)


def _check_depth(value: Any) -> None:
    """Limit the depth of a document, so that later code may recurse."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEPTH_MAX:
            raise SyntaxProblem("exceeded max depth")
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below += [inner for inner in each.values() if isinstance(inner, dict | list)]
            elif isinstance(each, list):
                below += [inner for inner in each if isinstance(inner, dict | list)]
        level = below


def _without_surrogates(value: Any) -> Any:
    """Replace lone surrogates by U+FFFD, as Go does."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        changed = {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
        if isinstance(value, _Twice):
            twice = _Twice(changed)
            twice.keys_twice = value.keys_twice
            return twice
        return changed
    return value


def _duplicates(value: Any, path: str, into: list[str]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            where = f"{path}.{key}" if path else key
            if isinstance(value, _Twice) and key in value.keys_twice:
                into.append(f'duplicate field "{where}"')
            _duplicates(inner, where, into)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _duplicates(inner, f"{path}[{index}]", into)


def strict_problems(document: Document, unknown: list[str]) -> list[str]:
    """Return duplicate and unknown fields as field validation words them, in the order of the document.

    `unknown` are the paths that the type does not have; duplicates at or below them are not reported.

    Source: sigs.k8s.io/json, UnmarshalStrict.
    """
    if not document.duplicates or document.duplicates[0].startswith("line "):
        return [*document.duplicates, *(f'unknown field "{path}"' for path in unknown)]
    found: list[str] = []
    _strict_problems(document.value, "", frozenset(unknown), frozenset(document.duplicates), found)
    return found


def _strict_problems(
    value: Any, path: str, unknown: frozenset[str], duplicates: frozenset[str], into: list[str]
) -> None:
    if isinstance(value, list):
        for index, inner in enumerate(value):
            _strict_problems(inner, f"{path}[{index}]", unknown, duplicates, into)
    elif isinstance(value, dict):
        for key, inner in value.items():
            where = f"{path}.{key}" if path else key
            if where in unknown:
                into.append(f'unknown field "{where}"')
                continue
            if (text := f'duplicate field "{where}"') in duplicates:
                into.append(text)
            _strict_problems(inner, where, unknown, duplicates, into)


# --- YAML ---


def parse_yaml(text: str) -> Document:
    """Parse a single YAML document.

    Raises: SyntaxProblem.
    """
    import yaml

    from nominee.machinery.wire.files.manifests import load_documents
    from nominee.machinery.wire.values.scalars import DecodeError

    try:
        duplicates = _scan(text)
        documents = load_documents(text)
    except SyntaxProblem:
        raise
    # ValueError: a number of thousands of digits, or an invalid date.
    except (yaml.YAMLError, DecodeError, RecursionError, ValueError) as error:
        raise SyntaxProblem(f"yaml: {_yaml_problem(error, text)}") from None
    value = _json_keys(documents[0] if documents else None)
    return Document(value, duplicates)


def _yaml_problem(error: BaseException, text: str) -> str:
    """Return a YAML error in go-yaml's words, with its line numbers: it never names the first line."""
    import yaml

    error = error.__cause__ or error.__context__ or error
    if not isinstance(error, yaml.MarkedYAMLError) or not error.problem:
        return " ".join(str(error).split())
    marks = (error.context_mark, error.problem_mark)
    line = next((int(mark.line) for mark in marks if mark is not None and mark.line), 0)
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    problem, mark = error.problem, error.problem_mark
    if problem.startswith("found undefined alias") and mark is not None:
        alias = re.match(r"\*([\w-]*)", text.splitlines()[mark.line][mark.column :])
        return f"unknown anchor '{alias[1] if alias else ''}' referenced"
    return f"line {line}: {problem}" if line else str(problem)


def _scan(text: str) -> list[str]:
    """Return the errors of duplicate keys; refuse deep nesting and alias bombs before anything is built."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    sizes: dict[str, int] = {}
    # For each open collection: [anchor, nodes before it, keys seen or None, whether a key comes next].
    stack: list[list[Any]] = []
    nodes, problems = 0, []
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.DocumentEndEvent):
            break
        if isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            anchor, before, _, _ = stack.pop()
            if anchor:
                sizes[anchor] = nodes - before
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        if isinstance(event, yaml.AliasEvent):
            nodes += sizes.get(event.anchor or "", 1)
        nodes += 1
        if stack and stack[-1][2] is not None:
            top = stack[-1]
            if top[3] and isinstance(event, yaml.ScalarEvent):
                if event.value in top[2]:
                    mark: Any = event.start_mark
                    line = mark.line + 1
                    problems.append(f'line {line}: key "{event.value}" already set in map')
                top[2].add(event.value)
            top[3] = not top[3]
        if isinstance(event, yaml.MappingStartEvent):
            stack.append([event.anchor, nodes, set(), True])
        elif isinstance(event, yaml.SequenceStartEvent):
            stack.append([event.anchor, nodes, None, False])
        if len(stack) > DEPTH_MAX:
            raise SyntaxProblem("yaml: exceeded max depth")
        if nodes > _YAML_NODES_MAX:
            raise SyntaxProblem("yaml: document contains excessive aliasing")
    return problems


def _json_keys(value: Any) -> Any:
    """Convert YAML's keys that are numbers or booleans to strings, as JSON requires."""
    if isinstance(value, dict):
        return {_key(key): _json_keys(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json_keys(item) for item in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else Literal(repr(value))
    # A !!binary value.
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


# --- the messages of Go's encoding/json ---


def json_problem(text: str) -> str:
    """Return the message of Go's encoding/json for a text that is not JSON."""
    try:
        end = _skip_value(text, _blank(text, 0), "looking for beginning of value", 0)
        end = _blank(text, end)
        if end < len(text):
            return _unexpected(text, end, "after top-level value")
    except _Stop as stop:
        return str(stop)
    return "unexpected end of JSON input"


class _Stop(Exception):
    pass


def _unexpected(text: str, at: int, context: str) -> str:
    if at >= len(text):
        return "unexpected end of JSON input"
    # Go reads one byte at a time.
    first_byte = text[at].encode(errors="replace")[0]
    return f"invalid character {quoted_character(chr(first_byte))} {context}"


def quoted_character(character: str) -> str:
    """Return a character as Go quotes it."""
    if character == "'":
        return "'\\''"
    if character == '"':
        return "'\"'"
    if character.isprintable():
        return f"'{character}'"
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f", "\a": "\\a", "\v": "\\v"}
    hexadecimal = f"\\x{ord(character):02x}"
    return f"'{named.get(character, hexadecimal)}'"


def _stop(text: str, at: int, context: str) -> _Stop:
    return _Stop(_unexpected(text, at, context))


def _blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _skip_value(text: str, at: int, context: str, depth: int) -> int:
    if depth > DEPTH_MAX:
        raise _Stop("exceeded max depth")
    if at >= len(text):
        raise _stop(text, at, context)
    first = text[at]
    if first == "{":
        return _skip_object(text, at + 1, depth)
    if first == "[":
        return _skip_array(text, at + 1, depth)
    if first == '"':
        return _skip_string(text, at + 1)
    if first in "-0123456789":
        return _skip_number(text, at)
    for word in ("true", "false", "null"):
        if first == word[0]:
            for offset, expected in enumerate(word[1:], start=1):
                if at + offset >= len(text) or text[at + offset] != expected:
                    raise _stop(text, at + offset, f"in literal {word} (expecting '{expected}')")
            return at + len(word)
    raise _stop(text, at, context)


def _skip_object(text: str, at: int, depth: int) -> int:
    at = _blank(text, at)
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        if text[at : at + 1] != '"':
            raise _stop(text, at, "looking for beginning of object key string")
        at = _blank(text, _skip_string(text, at + 1))
        if text[at : at + 1] != ":":
            raise _stop(text, at, "after object key")
        at = _skip_value(text, _blank(text, at + 1), "looking for beginning of value", depth + 1)
        at = _blank(text, at)
        if text[at : at + 1] == "}":
            return at + 1
        if text[at : at + 1] != ",":
            raise _stop(text, at, "after object key:value pair")
        at = _blank(text, at + 1)


def _skip_array(text: str, at: int, depth: int) -> int:
    at = _blank(text, at)
    if text[at : at + 1] == "]":
        return at + 1
    while True:
        at = _blank(text, _skip_value(text, at, "looking for beginning of value", depth + 1))
        if text[at : at + 1] == "]":
            return at + 1
        if text[at : at + 1] != ",":
            raise _stop(text, at, "after array element")
        at = _blank(text, at + 1)


def _skip_string(text: str, at: int) -> int:
    while at < len(text):
        character = text[at]
        if character == '"':
            return at + 1
        if character < " ":
            raise _stop(text, at, "in string literal")
        if character == "\\":
            at += 1
            escape = text[at : at + 1]
            if escape == "u":
                for offset in range(1, 5):
                    if text[at + offset : at + offset + 1] not in set("0123456789abcdefABCDEF"):
                        raise _stop(text, at + offset, "in \\u hexadecimal character escape")
                at += 4
            elif escape not in set('"\\/bfnrt') or not escape:
                raise _stop(text, at, "in string escape code")
        at += 1
    raise _stop(text, at, "")


def _skip_number(text: str, at: int) -> int:
    def digits(at: int, context: str) -> int:
        if not ("0" <= text[at : at + 1] <= "9"):
            raise _stop(text, at, context)
        while "0" <= text[at : at + 1] <= "9":
            at += 1
        return at

    if text[at] == "-":
        at += 1
    at = at + 1 if text[at : at + 1] == "0" else digits(at, "in numeric literal")
    if text[at : at + 1] == ".":
        at = digits(at + 1, "after decimal point in numeric literal")
    if text[at : at + 1] in ("e", "E"):
        at += 1
        if text[at : at + 1] in ("+", "-"):
            at += 1
        at = digits(at, "in exponent of numeric literal")
    return at
