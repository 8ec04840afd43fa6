"""Containers: names, images, ports, environment, resources, probes (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from apiserver.validation import field, names, quantities
from machinery.errors import Cause
from machinery.pb import core

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MESSAGE_POLICIES = ("FallbackToLogsOnError", "File")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_RESIZABLE = ("cpu", "memory")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_FIELD_PATHS = frozenset({
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"})  # fmt: skip
_PORT_NAME_LENGTH_MAX = 15


def containers(path: str, found: Sequence[core.Container], claims: frozenset[str]) -> list[Cause]:
    """The regular containers of a pod; there must be one."""
    if not found:
        return [field.required(path)]
    errors: list[Cause] = []
    seen: set[str] = set()
    for index, container in enumerate(found):
        at = f"{path}[{index}]"
        errors += _container(at, container, claims)
        if container.name in seen:
            errors.append(field.duplicate(f"{at}.name", container.name))
        seen.add(container.name)
        if container.restartPolicy and container.restartPolicy not in _RESTART_POLICIES:
            errors.append(
                field.not_supported(f"{at}.restartPolicy", container.restartPolicy, _RESTART_POLICIES)
            )
    errors += _host_ports(path, found)
    return errors


def init_containers(
    path: str, found: Iterable[core.Container], regular: Iterable[core.Container], claims: frozenset[str]
) -> list[Cause]:
    errors: list[Cause] = []
    seen = {container.name for container in regular}
    for index, container in enumerate(found):
        at = f"{path}[{index}]"
        errors += _container(at, container, claims)
        policy = container.restartPolicy
        if policy and policy not in _RESTART_POLICIES:
            errors.append(field.not_supported(f"{at}.restartPolicy", policy, _RESTART_POLICIES))
        if container.name in seen:
            errors.append(field.duplicate(f"{at}.name", container.name))
        seen.add(container.name)
        if policy != "Always":
            for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if container.HasField(name):
                    errors.append(
                        field.forbidden(
                            f"{at}.{name}", "may not be set for init containers without restartPolicy=Always"
                        )
                    )
    return errors


def _container(path: str, container: core.Container, claims: frozenset[str]) -> list[Cause]:
    errors: list[Cause] = []
    if not container.name:
        errors.append(field.required(f"{path}.name"))
    else:
        errors += [
            field.invalid(f"{path}.name", container.name, problem)
            for problem in names.dns_label(container.name)
        ]
    image = container.image
    if not image:
        errors.append(field.required(f"{path}.image"))
    elif image != image.strip():
        errors.append(field.invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))
    if container.imagePullPolicy not in PULL_POLICIES:
        errors.append(_choice(f"{path}.imagePullPolicy", container.imagePullPolicy, PULL_POLICIES))
    if container.terminationMessagePolicy not in _MESSAGE_POLICIES:
        errors.append(
            _choice(f"{path}.terminationMessagePolicy", container.terminationMessagePolicy, _MESSAGE_POLICIES)
        )
    if container.ports:
        errors += _ports(f"{path}.ports", container.ports)
    if container.env:
        errors += _environment(f"{path}.env", container.env)
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.HasField(probe):
            errors += _probe(f"{path}.{probe}", getattr(container, probe))
    resources = container.resources
    if resources.requests or resources.limits:
        errors += quantities.requirements(f"{path}.resources", resources.requests, resources.limits)
    if resources.claims:
        errors += _claims(f"{path}.resources.claims", resources.claims, claims)
    if container.resizePolicy:
        errors += _resize_policies(f"{path}.resizePolicy", container.resizePolicy)
    return errors


def _choice(path: str, value: str, choices: Sequence[str]) -> Cause:
    return field.not_supported(path, value, choices) if value else field.required(path)


def _ports(path: str, ports: Iterable[core.ContainerPort]) -> list[Cause]:
    errors: list[Cause] = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        if port.name:
            problems = _port_name(port.name)
            errors += [field.invalid(f"{at}.name", port.name, problem) for problem in problems]
            if not problems:
                if port.name in seen:
                    errors.append(field.duplicate(f"{at}.name", port.name))
                seen.add(port.name)
        if port.containerPort == 0:
            errors.append(field.required(f"{at}.containerPort"))
        elif not 0 < port.containerPort < 65536:
            errors.append(
                field.invalid(
                    f"{at}.containerPort", port.containerPort, "must be between 1 and 65535, inclusive"
                )
            )
        if port.hostPort and not 0 < port.hostPort < 65536:
            errors.append(
                field.invalid(f"{at}.hostPort", port.hostPort, "must be between 1 and 65535, inclusive")
            )
        if port.protocol not in _PROTOCOLS:
            errors.append(_choice(f"{at}.protocol", port.protocol, _PROTOCOLS))
    return errors


def _port_name(name: str) -> list[str]:
    problems = []
    if len(name) > _PORT_NAME_LENGTH_MAX:
        problems.append(f"must be no more than {_PORT_NAME_LENGTH_MAX} characters")
    lower = all(c in "abcdefghijklmnopqrstuvwxyz0123456789-" for c in name)
    if not lower:
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if lower and not any(c.isalpha() for c in name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def _host_ports(path: str, found: Iterable[core.Container]) -> list[Cause]:
    errors: list[Cause] = []
    seen: set[str] = set()
    for index, container in enumerate(found):
        for number, port in enumerate(container.ports):
            if not port.hostPort:
                continue
            text = f"{port.protocol}/{port.hostIP}/{port.hostPort}"
            if text in seen:
                errors.append(field.duplicate(f"{path}[{index}].ports[{number}].hostPort", text))
            seen.add(text)
    return errors


def _environment(path: str, variables: Iterable[core.EnvVar]) -> list[Cause]:
    errors: list[Cause] = []
    for index, variable in enumerate(variables):
        at = f"{path}[{index}]"
        if not variable.name:
            errors.append(field.required(f"{at}.name"))
        elif "=" in variable.name:
            errors.append(
                field.invalid(
                    f"{at}.name",
                    variable.name,
                    "a valid environment variable name must consist only of printable ASCII characters"
                    " other than '='",
                )
            )
        if not variable.HasField("valueFrom"):
            continue
        source = variable.valueFrom
        if variable.value and source.ListFields():
            errors.append(
                field.invalid(f"{at}.valueFrom", "", "may not be specified when `value` is not empty")
            )
        if source.HasField("fieldRef"):
            errors += _field_ref(f"{at}.valueFrom.fieldRef", source.fieldRef)
    return errors


def _field_ref(path: str, reference: core.ObjectFieldSelector) -> list[Cause]:
    if not reference.fieldPath:
        return [field.required(f"{path}.fieldPath")]
    base, bracket, _ = reference.fieldPath.partition("[")
    if base in _FIELD_PATHS or (bracket and base in ("metadata.labels", "metadata.annotations")):
        return []
    problem = f"error converting fieldPath: field label not supported: {reference.fieldPath}"
    return [field.invalid(f"{path}.fieldPath", reference.fieldPath, problem)]


def _probe(path: str, probe: core.Probe) -> list[Cause]:
    errors: list[Cause] = []
    handlers = [name for name in ("exec", "httpGet", "tcpSocket", "grpc") if probe.handler.HasField(name)]
    if not handlers:
        errors.append(field.required(path, "must specify a handler type"))
    errors += [
        field.forbidden(f"{path}.{extra}", "may not specify more than 1 handler type")
        for extra in handlers[1:]
    ]
    for name in (
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ):
        errors += field.non_negative(f"{path}.{name}", getattr(probe, name))
    if path.endswith(("livenessProbe", "startupProbe")) and probe.successThreshold != 1:
        errors.append(field.invalid(f"{path}.successThreshold", probe.successThreshold, "must be 1"))
    return errors


def _claims(path: str, used: Iterable[core.ResourceClaim], known: frozenset[str]) -> list[Cause]:
    errors: list[Cause] = []
    for index, claim in enumerate(used):
        if claim.name not in known:
            listed = f"which is [{' '.join(sorted(known))}]" if known else "which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims {listed}"
            errors.append(field.not_found(f"{path}[{index}]", claim.name, detail))
    return errors


def _resize_policies(path: str, policies: Iterable[core.ContainerResizePolicy]) -> list[Cause]:
    errors: list[Cause] = []
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        if policy.resourceName in seen:
            errors.append(field.duplicate(f"{path}[{index}]", policy.resourceName))
        seen.add(policy.resourceName)
        if policy.resourceName not in _RESIZABLE:
            errors.append(_choice(path, policy.resourceName, _RESIZABLE))
        if policy.restartPolicy not in _RESIZE_POLICIES:
            errors.append(_choice(path, policy.restartPolicy, _RESIZE_POLICIES))
    return errors


def names_of(found: Iterable[Any]) -> list[str]:
    return [container.name for container in found]
