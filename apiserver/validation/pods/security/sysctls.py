"""A pod's sysctls (kube-apiserver 1.36, validateSysctls)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nominee.apiserver.validation import field
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core
from nominee.machinery.api.sysctls import namespace_of, with_dots

_LENGTH_MAX = 253
_PATTERN = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_known = re.compile(_PATTERN, re.ASCII)
_PROBLEM = f"must have at most {_LENGTH_MAX} characters and match regex ^{_PATTERN}$"


def sysctls(path: str, spec: core.PodSpec) -> Iterator[Cause]:
    """Check sysctls: each once, and none of a namespace that the pod shares with its host."""
    seen: set[str] = set()
    for index, sysctl in enumerate(spec.securityContext.sysctls):
        at, name = f"{path}[{index}].name", sysctl.name
        if not name:
            yield field.required(at)
        elif len(name.encode()) > _LENGTH_MAX or not _known.fullmatch(name):
            yield field.invalid(at, name, _PROBLEM)
        elif name in seen:
            yield field.duplicate(at, name)
        namespace = namespace_of(with_dots(name))
        if namespace == "net" and spec.hostNetwork:
            yield field.invalid(at, name, "may not be specified when 'hostNetwork' is true")
        if namespace == "ipc" and spec.hostIPC:
            yield field.invalid(at, name, "may not be specified when 'hostIPC' is true")
        seen.add(name)
