"""Read an expression's tokens before it is compiled: lookups of domains, and the worst size of its values.

`device.attributes["a.example.com"]` is an empty map when the device has nothing of that domain (upstream's
lookup answers so; `in` and the macros do not). The library has plain maps only, so the lookup is written as
what it means: `device.attributes[?"a.example.com"].orValue({})`.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
      | (?P<string>[rRbB]{0,2}(?:\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''
          |"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<number>[0-9][0-9A-Za-z_.]*)
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
_LOOKED_UP = ("attributes", "capacity")
_ITERATIONS_MAX = 10_000  # the library's own budget for comprehensions
SIZE_MAX = 10_000_000  # characters that an expression may build, at worst


def tokens_of(expression: str) -> list[str]:
    """Return all tokens without blanks and comments; a raw string keeps its prefix."""
    return [m[0] for m in _TOKEN.finditer(expression) if m.lastgroup != "space"]


def with_empty_domains(expression: str) -> str:
    """Return the same expression, in which a lookup of an absent domain returns an empty map."""
    tokens = tokens_of(expression)
    return "".join(_rewritten(tokens))


def _rewritten(tokens: list[str]) -> list[str]:
    out: list[str] = []
    index, count = 0, len(tokens)
    while index < count:
        found = tokens[index : index + 3]
        if found[:2] != ["device", "."] or len(found) < 3 or found[2] not in _LOOKED_UP:
            out += _spaced(tokens[index])
            index += 1
            continue
        out += found
        index += 3
        if index < count and tokens[index] == "[":
            end = _closing(tokens, index)
            optional = tokens[index + 1 : index + 2] == ["?"]
            key = _rewritten(tokens[index + 2 if optional else index + 1 : end])
            lookup = ["[?", *key, "].orValue({})"]
            if optional:
                start = len(out) - 3
                out[start:] = ["optional.of(", *out[start:], *lookup, ")"]
            else:
                out += lookup
            index = end + 1
        elif tokens[index : index + 1] == ["."] and tokens[index + 2 : index + 3] != ["("]:
            out += [".?", *tokens[index + 1 : index + 2], ".orValue({})"]
            index += 2
    return out


def _spaced(token: str) -> list[str]:
    """Return a token, with spaces around a word (`a in b`)."""
    return [" ", token, " "] if token[:1].isalnum() or token[:1] == "_" else [token]


def _closing(tokens: list[str], start: int) -> int:
    """Return the index of the bracket that closes the one at `start`, or the end."""
    depth = 0
    for index in range(start, len(tokens)):
        depth += (tokens[index] == "[") - (tokens[index] == "]")
        if not depth:
            return index
    return len(tokens)


def size_at_worst(expression: str) -> int:
    """Return how many characters evaluating can build at most.

    A string bound to a variable doubles when it is used twice.
    """
    tokens = tokens_of(expression)
    size = max(len(expression), 1)
    literal = max((len(token) for token in tokens if token[-1:] in "\"'"), default=1)
    for index, token in enumerate(tokens):
        if token == "bind" and tokens[index + 1 : index + 2] == ["("]:
            name = tokens[index + 2] if index + 2 < len(tokens) else ""
            size *= max(tokens.count(name) - 1, 1)
        elif token == "replace":
            size *= literal
        elif token == "join":
            size *= _ITERATIONS_MAX if "map" in tokens else 1
        if size > SIZE_MAX:
            return size
    return size
