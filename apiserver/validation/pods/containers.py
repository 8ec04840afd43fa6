"""Containers: names, images, ports, environment, resources, probes (kube-apiserver 1.36)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.pods import environment, handlers
from nominee.apiserver.validation.pods.security import contexts as security
from nominee.apiserver.validation.pods.volumes import volumes
from nominee.apiserver.validation.values import addresses, quantities
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_RESIZABLE = ("cpu", "memory")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RULE_ACTIONS = ("Restart", "RestartAllContainers")
_RULE_OPERATORS = ("In", "NotIn")
_RULES_MAX = 20
_EXIT_CODES_MAX = 255


_NOTHING: frozenset[str] = frozenset()


@dataclass(slots=True)
class Around:
    """The properties of the pod that decide whether a container is valid."""

    claims: frozenset[str]
    volumes: Mapping[str, core.VolumeSource]
    grace_seconds: int
    restart_policy: str
    host_users: bool


def around(spec: core.PodSpec, known: Mapping[str, core.VolumeSource]) -> Around:
    """Return the properties of a pod for its containers; `known` are its volumes by name."""
    return Around(
        claims=frozenset(claim.name for claim in spec.resourceClaims if claim.name)
        if spec.resourceClaims
        else _NOTHING,
        volumes=known,
        grace_seconds=spec.terminationGracePeriodSeconds,
        restart_policy=spec.restartPolicy,
        host_users=not spec.HasField("hostUsers") or spec.hostUsers,
    )


def containers(path: str, found: Sequence[core.Container], pod: Around) -> Iterator[Cause]:
    """Check the regular containers of a pod; there must be one."""
    if not found:
        yield field.required(path)
        return
    seen: set[str] = set()
    for index, container in enumerate(found):
        at = f"{path}[{index}]"
        yield from common(at, container, pod)
        yield from field.unique(f"{at}.name", container.name, seen)
        yield from handlers.of_container(at, container, pod.grace_seconds)
        if container.restartPolicyRules or container.HasField("restartPolicy"):
            yield from _restart(at, container)
    yield from _host_ports(path, found)


def init_containers(
    path: str, found: Iterable[core.Container], regular: Iterable[core.Container], pod: Around
) -> Iterator[Cause]:
    """Check the init containers, sidecars among them."""
    seen = {container.name for container in regular}
    for index, container in enumerate(found):
        at = f"{path}[{index}]"
        yield from common(at, container, pod)
        yield from _restart(at, container)
        if container.name in seen:
            yield field.duplicate(f"{at}.name", container.name)
        elif container.name:
            seen.add(container.name)
        # They run one by one: each is judged alone.
        yield from _host_ports(path, [container])
        if container.restartPolicy == "Always":
            yield from handlers.of_container(at, container, pod.grace_seconds)
            continue
        for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
            if container.HasField(name):
                yield field.forbidden(
                    f"{at}.{name}", "may not be set for init containers without restartPolicy=Always"
                )


def ephemeral_containers(path: str, spec: core.PodSpec, pod: Around) -> Iterator[Cause]:
    """Check the containers that were added to a running pod; most fields are forbidden."""
    others = {container.name for container in (*spec.containers, *spec.initContainers)}
    seen = set(others)
    for index, ephemeral in enumerate(spec.ephemeralContainers):
        at = f"{path}[{index}]"
        container = core.Container.FromString(ephemeral.ephemeralContainerCommon.SerializeToString())
        yield from common(at, container, pod)
        yield from untrimmed_image(at, container)
        yield from field.unique(f"{at}.name", container.name, seen)
        target = ephemeral.targetContainerName
        if target and target not in others:
            yield field.not_found(f"{at}.targetContainerName", target)
        problem = "cannot be set for an Ephemeral Container"
        given = {descriptor.name for descriptor, value in container.ListFields() if _says(value)}
        yield from (field.forbidden(f"{at}.{name}", problem) for name in _NOT_EPHEMERAL if name in given)
        for number, mount in enumerate(container.volumeMounts):
            for name in ("subPath", "subPathExpr"):
                if getattr(mount, name):
                    yield field.forbidden(f"{at}.volumeMounts[{number}].{name}", problem)


# In the order of Go's struct.
_NOT_EPHEMERAL = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe",
    "readinessProbe", "startupProbe", "lifecycle",
)  # fmt: skip


def _says(value: object) -> bool:
    """Return whether any resource is given: Go has no pointer that would say so."""
    return not isinstance(value, core.ResourceRequirements) or bool(value.ListFields())


def _restart(path: str, container: core.Container) -> Iterator[Cause]:
    """A container's own restart policy and rules (KEP-5307)."""
    policy, at = container.restartPolicy, f"{path}.restartPolicyRules"
    if container.HasField("restartPolicy") and policy not in _RESTART_POLICIES:
        yield field.not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
    if container.restartPolicyRules and not container.HasField("restartPolicy"):
        problem = "must specify restartPolicy when restart rules are used"
        yield field.required(f"{path}.restartPolicy", problem)
    if len(container.restartPolicyRules) > _RULES_MAX:
        yield field.too_many(at, len(container.restartPolicyRules), _RULES_MAX)
    for index, rule in enumerate(container.restartPolicyRules):
        yield from _restart_rule(f"{at}[{index}]", rule)


def _restart_rule(path: str, rule: core.ContainerRestartRule) -> Iterator[Cause]:
    yield from field.one_of(f"{path}.action", rule.action, _RULE_ACTIONS)
    if not rule.HasField("exitCodes"):
        yield field.required(f"{path}.exitCodes", "must be specified")
        return
    codes = rule.exitCodes
    yield from field.one_of(f"{path}.exitCodes.operator", codes.operator, _RULE_OPERATORS)
    if len(codes.values) > _EXIT_CODES_MAX:
        yield field.too_many(f"{path}.exitCodes.values", len(codes.values), _EXIT_CODES_MAX)


def untrimmed_image(path: str, container: core.Container) -> list[Cause]:
    """Check that the image has no white space around it: in pods only, not in templates."""
    if container.image == container.image.strip():
        return []
    return [field.invalid(f"{path}.image", container.image, "must not have leading or trailing whitespace")]


def common(path: str, container: core.Container, pod: Around) -> Iterator[Cause]:
    """Check the rules that containers, init containers and ephemeral containers share."""
    if not container.name:
        yield field.required(f"{path}.name")
    else:
        yield from field.check(f"{path}.name", container.name, names.dns_label)
    if not container.image:
        yield field.required(f"{path}.image")
    if container.terminationMessagePolicy not in _MESSAGE_POLICIES:
        yield from field.choice(
            f"{path}.terminationMessagePolicy", container.terminationMessagePolicy, _MESSAGE_POLICIES
        )
    if container.ports:
        yield from _ports(f"{path}.ports", container.ports)
    if container.env:
        yield from environment.variables(f"{path}.env", container.env)
    if container.envFrom:
        yield from environment.sources(f"{path}.envFrom", container.envFrom)
    if container.volumeMounts:
        yield from volumes.mounts(f"{path}.volumeMounts", container, pod.volumes)
    if container.volumeDevices:
        yield from volumes.devices(f"{path}.volumeDevices", container, pod.volumes)
    if container.imagePullPolicy not in PULL_POLICIES:
        yield from field.choice(f"{path}.imagePullPolicy", container.imagePullPolicy, PULL_POLICIES)
    resources = container.resources
    if resources.requests or resources.limits:
        yield from quantities.requirements(f"{path}.resources", resources.requests, resources.limits)
    if resources.claims:
        yield from _claims(f"{path}.resources.claims", resources.claims, pod.claims)
    if container.resizePolicy:
        yield from _resize_policies(f"{path}.resizePolicy", container.resizePolicy, pod.restart_policy)
    if container.HasField("securityContext"):
        at = f"{path}.securityContext"
        yield from security.of_container(at, container.securityContext, host_users=pod.host_users)


def _ports(path: str, ports: Iterable[core.ContainerPort]) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        if port.name:
            problems = addresses.port_name(port.name)
            yield from field.problems(f"{at}.name", port.name, problems)
            if not problems:
                yield from field.unique(f"{at}.name", port.name, seen)
        if port.containerPort == 0:
            yield field.required(f"{at}.containerPort")
        elif not 0 < port.containerPort < 65536:
            yield field.invalid(
                f"{at}.containerPort", port.containerPort, "must be between 1 and 65535, inclusive"
            )
        if port.hostPort and not 0 < port.hostPort < 65536:
            yield field.invalid(f"{at}.hostPort", port.hostPort, "must be between 1 and 65535, inclusive")
        if port.protocol not in _PROTOCOLS:
            yield from field.choice(f"{at}.protocol", port.protocol, _PROTOCOLS)


def _host_ports(path: str, found: Iterable[core.Container]) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, container in enumerate(found):
        for number, port in enumerate(container.ports):
            if not port.hostPort:
                continue
            text = f"{port.protocol}/{port.hostIP}/{port.hostPort}"
            yield from field.unique(f"{path}[{index}].ports[{number}].hostPort", text, seen)


def _claims(path: str, used: Iterable[core.ResourceClaim], known: frozenset[str]) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, claim in enumerate(used):
        at, name = f"{path}[{index}]", claim.name
        if not name:
            yield field.required(at)
            continue
        key = f"{name}/{claim.request}" if claim.request else name
        if name in seen:
            yield field.duplicate(at, name)
        else:
            if claim.request:
                yield from field.check(f"{at}.request", claim.request, names.dns_label)
            if key in seen:
                yield field.duplicate(at, key)
            elif not claim.request:
                yield from (field.duplicate(at, name) for each in seen if each.startswith(f"{name}/"))
            seen.add(key)
        if name not in known:
            listed = f": {', '.join(sorted(known))}" if known else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{listed}"
            yield field.not_found(at, name, detail)


def _resize_policies(
    path: str, policies: Iterable[core.ContainerResizePolicy], restart_policy: str
) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        yield from field.unique(f"{path}[{index}]", policy.resourceName, seen)
        if policy.resourceName not in _RESIZABLE:
            yield from field.choice(path, policy.resourceName, _RESIZABLE)
        if policy.restartPolicy not in _RESIZE_POLICIES:
            yield from field.choice(path, policy.restartPolicy, _RESIZE_POLICIES)
        if restart_policy == "Never" and policy.restartPolicy != "NotRequired":
            problem = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield field.invalid(path, policy.restartPolicy, problem)


def names_of(found: Iterable[Any]) -> list[str]:
    return [container.name for container in found]
