"""Names in the API group resource.k8s.io: drivers, pools, devices, attributes (kube-apiserver 1.36)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nominee.apiserver.validation import field, names
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.names import regex_problem

_DRIVER_LENGTH_MAX = 63
_POOL_LENGTH_MAX = 253
_IDENTIFIER_LENGTH_MAX = 32
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_identifier = re.compile(_IDENTIFIER, re.ASCII)
_IDENTIFIER_PROBLEM = regex_problem(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric"
    " characters or '_'",
    _IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)


def label(path: str, name: str) -> list[Cause]:
    return field.check(path, name, names.dns_label)


def subdomain(path: str, name: str) -> list[Cause]:
    return field.check(path, name, names.dns_subdomain)


def driver(path: str, name: str) -> Iterator[Cause]:
    """Check a driver's name, of DRA or CSI."""
    if not name:
        yield field.required(path)
    if len(name.encode()) > _DRIVER_LENGTH_MAX:
        yield field.too_long(path, _DRIVER_LENGTH_MAX)
    yield from field.problems(path, name, names.dns_subdomain(name.lower()))


def pool(path: str, name: str) -> list[Cause]:
    """Check a pool's name: DNS subdomains, separated by slashes."""
    if not name:
        return [field.required(path)]
    errors = [field.too_long(path, _POOL_LENGTH_MAX)] if len(name.encode()) > _POOL_LENGTH_MAX else []
    for part in name.split("/"):
        errors += subdomain(path, part)
    return errors


def device_class(path: str, name: str) -> list[Cause]:
    return subdomain(path, name) if name else [field.required(path)]


def _c_identifier(path: str, name: str) -> Iterator[Cause]:
    if len(name.encode()) > _IDENTIFIER_LENGTH_MAX:
        yield field.too_long(path, _IDENTIFIER_LENGTH_MAX)
    if not _identifier.fullmatch(name):
        yield field.invalid(path, name, _IDENTIFIER_PROBLEM)


def attribute_name(path: str, name: str) -> list[Cause]:
    """Check an attribute's name: an identifier, with or without a domain."""
    parts = name.split("/")
    if len(parts) == 1:
        return list(_c_identifier(path, name))
    if len(parts) > 2:
        return [field.invalid(path, name, "must not contain more than one slash")]
    domain, identifier = parts
    errors = [
        *(driver(path, domain) if domain else [field.invalid(path, "", "the domain must not be empty")])
    ]
    if identifier:
        return [*errors, *_c_identifier(path, identifier)]
    return [*errors, field.invalid(path, "", "the name must not be empty")]


def fully_qualified(path: str, name: str) -> Iterator[Cause]:
    yield from attribute_name(path, name)
    if "/" not in name:
        problem = "a fully qualified name must be a domain and a name separated by a slash"
        yield field.invalid(path, name, problem)
