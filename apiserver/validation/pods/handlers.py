"""Probes and lifecycle hooks of containers (kube-apiserver 1.36, validateProbe, validateLifecycle)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from nominee.apiserver.validation import field
from nominee.apiserver.validation.values import addresses
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.names import regex_problem
from nominee.machinery.api.pb import core

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SCHEMES = ("HTTP", "HTTPS")
_HEADER = r"[-A-Za-z0-9]+"
_header = re.compile(_HEADER, re.ASCII)
_HEADER_PROBLEM = regex_problem(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name"
)
_COUNTED = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def of_container(path: str, container: core.Container, grace_seconds: int) -> Iterator[Cause]:
    """Check the probes and lifecycle handlers of a container."""
    if container.HasField("lifecycle"):
        lifecycle = container.lifecycle
        if lifecycle.HasField("postStart"):
            yield from _handler(f"{path}.lifecycle.postStart", lifecycle.postStart, grace_seconds)
        if lifecycle.HasField("preStop"):
            yield from _handler(f"{path}.lifecycle.preStop", lifecycle.preStop, grace_seconds)
    if container.HasField("livenessProbe"):
        yield from _probe(f"{path}.livenessProbe", container.livenessProbe, once=True)
    if container.HasField("readinessProbe"):
        probe = container.readinessProbe
        yield from _probe(f"{path}.readinessProbe", probe, once=False)
        if probe.HasField("terminationGracePeriodSeconds"):
            at = f"{path}.readinessProbe.terminationGracePeriodSeconds"
            problem = "must not be set for readinessProbes"
            yield field.invalid(at, probe.terminationGracePeriodSeconds, problem)
    if container.HasField("startupProbe"):
        yield from _probe(f"{path}.startupProbe", container.startupProbe, once=True)


def _probe(path: str, probe: core.Probe, *, once: bool) -> Iterator[Cause]:
    yield from _handler(path, probe.handler, 0)
    for name in _COUNTED:
        yield from field.non_negative(f"{path}.{name}", getattr(probe, name))
    if probe.HasField("terminationGracePeriodSeconds") and probe.terminationGracePeriodSeconds <= 0:
        at = f"{path}.terminationGracePeriodSeconds"
        yield field.invalid(at, probe.terminationGracePeriodSeconds, "must be greater than 0")
    if once and probe.successThreshold != 1:
        yield field.invalid(f"{path}.successThreshold", probe.successThreshold, "must be 1")


def _handler(path: str, handler: Any, grace_seconds: int) -> list[Cause]:
    """Exactly one way to ask; only the first is looked at."""
    known = handler.DESCRIPTOR.fields_by_name
    given = [name for name in _HANDLERS if name in known and handler.HasField(name)]
    if not given:
        return [field.required(path, "must specify a handler type")]
    errors = _action(f"{path}.{given[0]}", given[0], getattr(handler, given[0]), grace_seconds)
    return errors + [
        field.forbidden(f"{path}.{extra}", "may not specify more than 1 handler type") for extra in given[1:]
    ]


def _action(path: str, name: str, action: Any, grace_seconds: int) -> list[Cause]:
    match name:
        case "exec":
            return [] if action.command else [field.required(f"{path}.command")]
        case "httpGet":
            return _http_get(path, action)
        case "tcpSocket":
            port = action.port
            return addresses.port_number_or_name(f"{path}.port", port.type, port.intVal, port.strVal)
        case "grpc":
            return addresses.port(f"{path}.port", action.port)
        case _:
            if 0 <= action.seconds <= grace_seconds:
                return []
            problem = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_seconds})"
            return [field.invalid(path, action.seconds, problem)]


def _http_get(path: str, action: core.HTTPGetAction) -> list[Cause]:
    errors: list[Cause] = []
    if not action.path:
        errors.append(field.required(f"{path}.path"))
    port = action.port
    errors += addresses.port_number_or_name(f"{path}.port", port.type, port.intVal, port.strVal)
    errors += field.one_of(f"{path}.scheme", action.scheme, _SCHEMES)
    errors += [
        field.invalid(f"{path}.httpHeaders", header.name, _HEADER_PROBLEM)
        for header in action.httpHeaders
        if not _header.fullmatch(header.name)
    ]
    return errors
