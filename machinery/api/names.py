"""Validate names, label keys and label values, with Kubernetes' messages.

Each `..._problems` returns the messages, empty for a good value. Source: k8s.io/apimachinery's validation
and field packages, 1.36.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

_QUALIFIED_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = rf"({_QUALIFIED_NAME})?"
_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_DNS_1035_LABEL = r"[a-z]([-a-z0-9]*[a-z0-9])?"

_QUALIFIED_NAME_RE = re.compile(_QUALIFIED_NAME)
_LABEL_VALUE_RE = re.compile(_LABEL_VALUE)
_DNS_LABEL_RE = re.compile(_DNS_LABEL)
_DNS_SUBDOMAIN_RE = re.compile(_DNS_SUBDOMAIN)
_DNS_1035_LABEL_RE = re.compile(_DNS_1035_LABEL)

EMPTY = "must be non-empty"


def regex_problem(message: str, pattern: str, *examples: str) -> str:
    """Return a message with examples and the pattern, spaced as upstream spaces it."""
    listed = ",  or ".join(f"'{example}'" for example in examples)
    listed = f"e.g. {listed}, " if examples else ""
    return f"{message} ({listed}regex used for validation is '{pattern}')"


def too_long(length: int, unit: str = "characters") -> str:
    """Return the message about a text of more than `length` bytes.

    Lengths are always in bytes, but only the functions that upstream has moved to its package `content`
    (label keys and values, and what declarative validation checks) say so.
    """
    return f"must be no more than {length} {unit}"


_NAME_PROBLEM = regex_problem(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character",
    _QUALIFIED_NAME,
    "MyName",
    "my.name",
    "123-abc",
)


def qualified_name_problems(value: str) -> list[str]:
    """Label keys, taint keys, resource names: `name` or `dns.subdomain/name`."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return [f"a valid label key {_NAME_PROBLEM} with an optional DNS subdomain prefix and '/' "
                "(e.g. 'example.com/MyName')"]  # fmt: skip
    problems = []
    if slash:
        found = [EMPTY] if not prefix else dns_subdomain_problems(prefix, unit="bytes")
        problems += [f"prefix part {problem}" for problem in found]
    if not name:
        problems.append(f"name part {EMPTY}")
    elif len(name.encode()) > 63:
        problems.append(f"name part {too_long(63, 'bytes')}")
    if not _QUALIFIED_NAME_RE.fullmatch(name):
        problems.append(f"name part {_NAME_PROBLEM}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """Return the messages about a text that is not a valid label value."""
    problems = []
    if len(value.encode()) > 63:
        problems.append(too_long(63, "bytes"))
    if not _LABEL_VALUE_RE.fullmatch(value):
        message = (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
            "and must start and end with an alphanumeric character"
        )
        problems.append(regex_problem(message, _LABEL_VALUE, "MyValue", "my_value", "12345"))
    return problems


def dns_subdomain_problems(value: str, *, unit: str = "characters") -> list[str]:
    """RFC 1123 subdomain: the names of most objects. `unit`: see `too_long`."""
    problems = []
    if len(value.encode()) > 253:
        problems.append(too_long(253, unit))
    if not _DNS_SUBDOMAIN_RE.fullmatch(value):
        message = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        problems.append(regex_problem(message, _DNS_SUBDOMAIN, "example.com"))
    return problems


def dns_label_problems(value: str, *, unit: str = "characters") -> list[str]:
    """RFC 1123 label: namespaces and containers. `unit`: see `too_long`."""
    problems = []
    if len(value.encode()) > 63:
        problems.append(too_long(63, unit))
    if not _DNS_LABEL_RE.fullmatch(value):
        if _DNS_SUBDOMAIN_RE.fullmatch(value):
            problems.append("must not contain dots")
        else:
            message = (
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
                "must start and end with an alphanumeric character"
            )
            problems.append(regex_problem(message, _DNS_LABEL, "my-name", "123-abc"))
    return problems


def dns_1035_label_problems(value: str) -> list[str]:
    """RFC 1035 label: services."""
    problems = []
    if len(value.encode()) > 63:
        problems.append(too_long(63))
    if not _DNS_1035_LABEL_RE.fullmatch(value):
        message = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
            "alphabetic character, and end with an alphanumeric character"
        )
        problems.append(regex_problem(message, _DNS_1035_LABEL, "my-name", "abc-123"))
    return problems


_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_ESCAPES |= {'"': '\\"', "\\": "\\\\"}


def go_quote(text: str) -> str:
    """Return the text as Go's `%q` prints it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    parts = []
    for char in text:
        code = ord(char)
        if char in _ESCAPES:
            parts.append(_ESCAPES[char])
        elif char.isprintable():
            parts.append(char)
        elif code < 0x80:
            parts.append(f"\\x{code:02x}")
        else:
            parts.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return '"' + "".join(parts) + '"'


def invalid(path: str, value: object, detail: str) -> str:
    """`field.Invalid`'s text: `path: Invalid value: "x": detail`. No path prints `<nil>`."""
    shown = go_quote(value) if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return f"{path or '<nil>'}: Invalid value: {shown}: {detail}"


def not_supported(path: str, value: str, supported: Iterable[str]) -> str:
    """`field.NotSupported`'s text; the values are printed in the given order."""
    listed = ", ".join(go_quote(each) for each in supported)
    return f"{path}: Unsupported value: {go_quote(value)}: supported values: {listed}"


def aggregate(problems: Iterable[str]) -> str:
    """Return several errors in one text, each once, as Go's aggregate prints them."""
    unique = list(dict.fromkeys(problems))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
