"""Which texts are names: RFC 1123 labels and subdomains, qualified names, label values.

Each function gives upstream's complaints about a text, an empty tuple for a good one. The verdicts are
cached: the same names come again and again. Source: k8s.io/apimachinery/pkg/util/validation 1.36.
"""

from __future__ import annotations

import re
from functools import lru_cache

Problems = tuple[str, ...]

_LABEL_PATTERN = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_PATTERN = _LABEL_PATTERN + r"(\." + _LABEL_PATTERN + ")*"
_NAME_PATTERN = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_PATTERN = f"({_NAME_PATTERN})?"
_CONFIG_KEY_PATTERN = "[-._a-zA-Z0-9]+"
_PERCENT_PATTERN = "[0-9]+%"

_label = re.compile(_LABEL_PATTERN, re.ASCII)
_subdomain = re.compile(_SUBDOMAIN_PATTERN, re.ASCII)
_name = re.compile(_NAME_PATTERN, re.ASCII)
_value = re.compile(_VALUE_PATTERN, re.ASCII)
_config_key = re.compile(_CONFIG_KEY_PATTERN, re.ASCII)
_percent = re.compile(_PERCENT_PATTERN, re.ASCII)

LABEL_LENGTH_MAX = 63
SUBDOMAIN_LENGTH_MAX = 253

_CHARACTERS = "alphanumeric characters, '-', '_' or '.'"
_ENDS = "and must start and end with an alphanumeric character"

LABEL_PROBLEM = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}"
    f" (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL_PATTERN}')"
)
SUBDOMAIN_PROBLEM = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}"
    f" (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN_PATTERN}')"
)
_NAME_PROBLEM = (
    f"must consist of {_CHARACTERS}, {_ENDS}"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME_PATTERN}')"
)
_VALUE_PROBLEM = (
    f"a valid label must be an empty string or consist of {_CHARACTERS}, {_ENDS}"
    f" (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE_PATTERN}')"
)
_CONFIG_KEY_PROBLEM = (
    f"a valid config key must consist of {_CHARACTERS}"
    " (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name',"
    f" regex used for validation is '{_CONFIG_KEY_PATTERN}')"
)
PERCENT_PROBLEM = (
    "a valid percent string must be a numeric string followed by an ending '%'"
    f" (e.g. '1%',  or '93%', regex used for validation is '{_PERCENT_PATTERN}')"
)


def _too_long(length_max: int) -> str:
    return f"must be no more than {length_max} characters"


@lru_cache(maxsize=65536)
def dns_label(text: str) -> Problems:
    """An RFC 1123 label: namespaces, containers."""
    problems = []
    if len(text.encode()) > LABEL_LENGTH_MAX:
        problems.append(_too_long(LABEL_LENGTH_MAX))
    if not _label.fullmatch(text):
        if _subdomain.fullmatch(text):
            problems.append("must not contain dots")
        else:
            problems.append(LABEL_PROBLEM)
    return tuple(problems)


@lru_cache(maxsize=65536)
def dns_subdomain(text: str) -> Problems:
    """An RFC 1123 subdomain: most object names."""
    problems = []
    if len(text.encode()) > SUBDOMAIN_LENGTH_MAX:
        problems.append(_too_long(SUBDOMAIN_LENGTH_MAX))
    if not _subdomain.fullmatch(text):
        problems.append(SUBDOMAIN_PROBLEM)
    return tuple(problems)


@lru_cache(maxsize=65536)
def qualified_name(text: str) -> Problems:
    """A label key, an extended resource, a taint key: `name` or `prefix/name`."""
    problems: list[str] = []
    parts = text.split("/")
    if len(parts) > 2:
        return (
            f"a valid label key {_NAME_PROBLEM} with an optional DNS subdomain prefix and '/'"
            " (e.g. 'example.com/MyName')",
        )
    name = parts[-1]
    if len(parts) == 2:
        prefix = parts[0]
        if not prefix:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in dns_subdomain(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > LABEL_LENGTH_MAX:
        problems.append(f"name part {_too_long(LABEL_LENGTH_MAX)}")
    if not _name.fullmatch(name):
        problems.append(f"name part {_NAME_PROBLEM}")
    return tuple(problems)


@lru_cache(maxsize=65536)
def label_value(text: str) -> Problems:
    problems = []
    if len(text.encode()) > LABEL_LENGTH_MAX:
        problems.append(_too_long(LABEL_LENGTH_MAX))
    if not _value.fullmatch(text):
        problems.append(_VALUE_PROBLEM)
    return tuple(problems)


def config_key(text: str) -> Problems:
    """A key of a ConfigMap."""
    problems = []
    if len(text.encode()) > SUBDOMAIN_LENGTH_MAX:
        problems.append(_too_long(SUBDOMAIN_LENGTH_MAX))
    if not _config_key.fullmatch(text):
        problems.append(_CONFIG_KEY_PROBLEM)
    elif text == ".":
        problems.append("must not be '.'")
    elif text == "..":
        problems.append("must not be '..'")
    elif text.startswith(".."):
        problems.append("must not start with '..'")
    return tuple(problems)


def is_percent(text: str) -> bool:
    return _percent.fullmatch(text) is not None


def path_segment(text: str) -> Problems:
    """What no object's name may be, since it would break its path."""
    if text in {".", ".."}:
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{bad}'" for bad in ("/", "%") if bad in text)


def is_qualified(text: str) -> bool:
    return not qualified_name(text)
