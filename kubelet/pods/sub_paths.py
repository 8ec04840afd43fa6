"""The subPaths of a container's mounts, whose expressions name environment variables. Pure.

Values that are not emulated (of ConfigMaps, Secrets, Services, resources and addresses) may be anything: a
path that needs one is not checked.

Source: kubelet 1.36, makeMounts; k8s.io/kubernetes third_party/forked/golang/expansion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from nominee.machinery.api.pb import core

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")
_MAP_KEY: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]")
_OF_SERVICE: Final = re.compile(r"[A-Z0-9_]+_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\w+)?)")

_Value = str | None
"""None: the value is not emulated."""


def problems(pod: core.Pod) -> Mapping[str, str]:
    """Return, by container, why it cannot be created; without those that can."""
    found = {}
    for container in (*pod.spec.initContainers, *pod.spec.containers):
        problem = next(_problems(pod, container), "")
        if problem:
            found[container.name] = problem
    return found


def _problems(pod: core.Pod, container: core.Container) -> Iterator[str]:
    expressions = [mount.subPathExpr for mount in container.volumeMounts if mount.subPathExpr]
    values = _environment(pod, container) if expressions else {}
    for expression in expressions:
        missing: set[str] = set()

        def value_of(name: str, missing: set[str] = missing) -> _Value:
            value = values.get(name, "")
            if value == "" and not _may_come_from_elsewhere(container, name):
                missing.add(name)
            return value or None

        path = _expand(expression, value_of)
        if missing:
            yield f"missing value for {', '.join(sorted(missing))}"
        elif path is not None and path.startswith("/"):
            yield f"error SubPath `{path}` must not be an absolute path"
        elif path is not None and ".." in path.split("/"):
            yield f"unable to provision SubPath `{path}`: must not contain '..'"


def _may_come_from_elsewhere(container: core.Container, name: str) -> bool:
    """Return whether a variable may be of a Service, or of a ConfigMap or Secret as a whole."""
    declared = any(variable.name == name for variable in container.env)
    return not declared and (bool(container.envFrom) or bool(_OF_SERVICE.fullmatch(name)))


def _environment(pod: core.Pod, container: core.Container) -> Mapping[str, _Value]:
    """Return the variables that the container declares; each may refer to those before it."""
    values: dict[str, _Value] = {}

    def value_of(name: str) -> _Value:
        if name in values:
            return values[name]
        return None if _may_come_from_elsewhere(container, name) else f"$({name})"

    for variable in container.env:
        if variable.HasField("valueFrom"):
            values[variable.name] = _referenced(pod, variable.valueFrom)
        else:
            values[variable.name] = _expand(variable.value, value_of)
    return values


def _referenced(pod: core.Pod, source: core.EnvVarSource) -> _Value:
    """Return the value of a field of the pod; a label or annotation that it lacks is empty."""
    path = source.fieldRef.fieldPath
    if key := _MAP_KEY.fullmatch(path):
        of = pod.metadata.labels if key[1] == "labels" else pod.metadata.annotations
        return of.get(key[2], "")
    return {
        "metadata.name": pod.metadata.name,
        "metadata.namespace": pod.metadata.namespace,
        "metadata.uid": pod.metadata.uid,
        "spec.nodeName": pod.spec.nodeName,
        "spec.serviceAccountName": pod.spec.serviceAccountName,
    }.get(path)


def _expand(text: str, value_of: Callable[[str], _Value]) -> _Value:
    """Replace `$(NAME)` by its value and `$$` by `$`; None if a value is not emulated."""
    parts: list[_Value] = []
    end = 0
    for match in _REFERENCE.finditer(text):
        parts += [text[end : match.start()], "$" if match[1] is None else value_of(match[1])]
        end = match.end()
    parts.append(text[end:])
    known = [part for part in parts if part is not None]
    return "".join(known) if len(known) == len(parts) else None
