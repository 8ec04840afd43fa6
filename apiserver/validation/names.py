"""Valid names: `nominee.machinery.api.names` with a cache, and the rules that only an API server has.

Each function gives upstream's complaints about a text, an empty tuple for a good one. The verdicts are
cached: the same names come again and again. Source: k8s.io/apimachinery/pkg/util/validation 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from nominee.machinery.api import names
from nominee.machinery.api.names import regex_problem, too_long

Problems = tuple[str, ...]

SUBDOMAIN_LENGTH_MAX = 253

_CONFIG_KEY_PATTERN = "[-._a-zA-Z0-9]+"
_PERCENT_PATTERN = "[0-9]+%"
_config_key = re.compile(_CONFIG_KEY_PATTERN, re.ASCII)
_percent = re.compile(_PERCENT_PATTERN, re.ASCII)
_CONFIG_KEY_PROBLEM = regex_problem(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY_PATTERN,
    "key.name",
    "KEY_NAME",
    "key-name",
)
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_WILDCARD_PATTERN = rf"\*\.{_LABEL}(\.{_LABEL})*"
_wildcard = re.compile(_WILDCARD_PATTERN, re.ASCII)
_WILDCARD_PROBLEM = regex_problem(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must"
    " consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    _WILDCARD_PATTERN,
    "*.example.com",
)
PERCENT_PROBLEM = regex_problem(
    "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT_PATTERN, "1%", "93%"
)


def _cached(rule: Callable[[str], list[str]], texts_max: int = 65_536) -> Callable[[str], Problems]:
    """Return a rule of `machinery.api.names` that remembers its verdicts."""

    @lru_cache(texts_max)
    def problems(text: str) -> Problems:
        return tuple(rule(text))

    return problems


dns_label = _cached(names.dns_label_problems)
"""The problems of an RFC 1123 label: namespaces, containers."""
dns_1035_label = _cached(names.dns_1035_label_problems, 4096)
"""Of an RFC 1035 label, which begins with a letter: services."""
dns_subdomain = _cached(names.dns_subdomain_problems)
"""Of an RFC 1123 subdomain: most object names."""
qualified_name = _cached(names.qualified_name_problems)
"""Of a label key, extended resource or taint key: `name` or `prefix/name`."""
label_value = _cached(names.label_value_problems)


@lru_cache(maxsize=4096)
def wildcard_subdomain(text: str) -> Problems:
    """Return the problems of a wildcard host of an Ingress, as `*.example.com`."""
    problems = []
    if len(text.encode()) > SUBDOMAIN_LENGTH_MAX:
        problems.append(too_long(SUBDOMAIN_LENGTH_MAX))
    if not _wildcard.fullmatch(text):
        problems.append(_WILDCARD_PROBLEM)
    return tuple(problems)


def mask_trailing_dash(prefix: str) -> str:
    """Return a prefix of names in the form that is validated: it may end with a dash, unlike a name."""
    return prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def config_key(text: str) -> Problems:
    """Return the problems of a key of a ConfigMap or Secret."""
    problems = []
    if len(text.encode()) > SUBDOMAIN_LENGTH_MAX:
        problems.append(too_long(SUBDOMAIN_LENGTH_MAX))
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
    """Return why a name cannot be a segment of a path."""
    if text in {".", ".."}:
        return (f"may not be '{text}'",)
    return tuple(f"may not contain '{bad}'" for bad in ("/", "%") if bad in text)


def is_qualified(text: str) -> bool:
    return not qualified_name(text)
