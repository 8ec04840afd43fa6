"""Paths in files systems and modes of files, as parts of volumes (kube-apiserver 1.36)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nominee.apiserver.validation import field, names
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.names import regex_problem

_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_http_path = re.compile(_HTTP_PATH, re.ASCII)
MODE_PROBLEM = "must be a number between 0 and 0777 (octal), both inclusive"


def no_backsteps(path: str, target: str) -> list[Cause]:
    if ".." in target.split("/"):
        return [field.invalid(path, target, "must not contain '..'")]
    return []


def local_descending(path: str, target: str) -> list[Cause]:
    errors = [field.invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return errors + no_backsteps(path, target)


def local_non_reserved(path: str, target: str) -> Iterator[Cause]:
    yield from local_descending(path, target)
    if target.startswith("..") and not target.startswith("../"):
        yield field.invalid(path, target, "must not start with '..'")


def domain_prefixed(path: str, target: str) -> list[Cause]:
    """Check the name of a controller, as `acme.io/foo`. Upstream: IsDomainPrefixedPath."""
    if not target:
        return [field.required(path)]
    domain, _, rest = target.partition("/")
    if not domain or not rest:
        return [field.invalid(path, target, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = field.check(path, domain, names.dns_subdomain)
    if not _http_path.fullmatch(rest):
        errors.append(field.invalid(path, rest, regex_problem("Invalid path", _HTTP_PATH)))
    return errors


def mode(path: str, value: int) -> list[Cause]:
    return [] if 0 <= value <= 0o777 else [field.invalid(path, value, MODE_PROBLEM)]
