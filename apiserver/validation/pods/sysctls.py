"""A pod's sysctls (kube-apiserver 1.36, validateSysctls)."""

from __future__ import annotations

import re

from apiserver.validation import field
from machinery.api.errors import Cause
from machinery.api.pb import core

_LENGTH_MAX = 253
_PATTERN = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_known = re.compile(_PATTERN, re.ASCII)
_PROBLEM = f"must have at most {_LENGTH_MAX} characters and match regex ^{_PATTERN}$"
_SHARED = (
    ("hostNetwork", ("net.",)),
    ("hostIPC", ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")),
)


def sysctls(path: str, spec: core.PodSpec) -> list[Cause]:
    """Check sysctls: each once, and none of a namespace that the pod shares with its host."""
    errors: list[Cause] = []
    seen: set[str] = set()
    for index, sysctl in enumerate(spec.securityContext.sysctls):
        at, name = f"{path}[{index}].name", sysctl.name
        if not name:
            errors.append(field.required(at))
        elif len(name.encode()) > _LENGTH_MAX or not _known.fullmatch(name):
            errors.append(field.invalid(at, name, _PROBLEM))
        elif name in seen:
            errors.append(field.duplicate(at, name))
        for where, prefixes in _SHARED:
            if _dotted(name).startswith(prefixes) and _shares(spec, where):
                errors.append(field.invalid(at, name, f"may not be specified when '{where}' is true"))
                break
        seen.add(name)
    return errors


def _shares(spec: core.PodSpec, where: str) -> bool:
    return spec.hostNetwork if where == "hostNetwork" else spec.hostIPC


def _dotted(name: str) -> str:
    """With dots between its parts, whichever separator comes first."""
    first = min((place for place in (name.find("."), name.find("/")) if place >= 0), default=-1)
    if first < 0 or name[first] == ".":
        return name
    return name.translate(str.maketrans("./", "/."))
