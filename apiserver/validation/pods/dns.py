"""A pod's own name service: dnsConfig and host aliases (kube-apiserver 1.36)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.values import addresses
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.names import regex_problem
from nominee.machinery.api.pb import core

_SERVERS_MAX = 3
_SEARCHES_MAX = 32
_SEARCHES_LENGTH_MAX = 2048
_SUBDOMAIN_LENGTH_MAX = 253
_LABEL = "[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?"
_UNDERSCORED = rf"{_LABEL}(\.{_LABEL})*"
_underscored = re.compile(_UNDERSCORED, re.ASCII)
_UNDERSCORED_PROBLEM = regex_problem(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-', '_' or '.', and"
    " must start and end with an alphanumeric character",
    _UNDERSCORED,
    "example.com",
)


def config(path: str, spec: core.PodSpec) -> list[Cause]:
    """dnsConfig, with respect to dnsPolicy."""
    found = spec.dnsConfig
    if spec.dnsPolicy == "None":
        if not spec.HasField("dnsConfig"):
            return [field.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not found.nameservers:
            problem = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [field.required(f"{path}.nameservers", problem)]
    errors: list[Cause] = []
    if len(found.nameservers) > _SERVERS_MAX:
        problem = f"must not have more than {_SERVERS_MAX} nameservers"
        errors.append(field.invalid(f"{path}.nameservers", list(found.nameservers), problem))
    for index, server in enumerate(found.nameservers):
        errors += addresses.ip_address(f"{path}.nameservers[{index}]", server)
    searches = list(found.searches)
    if len(searches) > _SEARCHES_MAX:
        problem = f"must not have more than {_SEARCHES_MAX} search paths"
        errors.append(field.invalid(f"{path}.searches", searches, problem))
    if len(" ".join(searches).encode()) > _SEARCHES_LENGTH_MAX:
        problem = (
            f"must not have more than {_SEARCHES_LENGTH_MAX} characters (including spaces) in the search list"
        )
        errors.append(field.invalid(f"{path}.searches", searches, problem))
    for index, search in enumerate(searches):
        if search != ".":
            errors += _search(f"{path}.searches[{index}]", search.removesuffix("."))
    for index, option in enumerate(found.options):
        if not option.name:
            errors.append(field.required(f"{path}.options[{index}]", "must not be empty"))
    return errors


def _search(path: str, search: str) -> Iterator[Cause]:
    if len(search.encode()) > _SUBDOMAIN_LENGTH_MAX:
        yield field.invalid(path, search, f"must be no more than {_SUBDOMAIN_LENGTH_MAX} characters")
    if not _underscored.fullmatch(search):
        yield field.invalid(path, search, _UNDERSCORED_PROBLEM)


def host_aliases(path: str, spec: core.PodSpec) -> Iterator[Cause]:
    """Check the entries of the hosts file."""
    for index, alias in enumerate(spec.hostAliases):
        at = f"{path}[{index}]"
        yield from addresses.ip_address(f"{at}.ip", alias.ip)
        for number, name in enumerate(alias.hostnames):
            yield from field.check(f"{at}.hostnames[{number}]", name, names.dns_subdomain)
