"""A pod's spec, in pods and in templates of pods (kube-apiserver 1.36, ValidatePodSpec).

Paths begin with the caller's ("spec", "spec.template.spec").
"""

from __future__ import annotations

import re

from apiserver.validation import (
    containers,
    dns,
    field,
    names,
    quantities,
    scheduling_terms,
    security,
    volumes,
)
from apiserver.validation.metadata import validate_labels
from machinery.errors import Cause
from machinery.pb import core
from machinery.quantity import Quantity

INT32_MAX = 2**31 - 1
_SYSCTL_LENGTH_MAX = 253
_SYSCTL_PATTERN = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")


def in_range(path: str, value: int, least: int, most: int) -> list[Cause]:
    if least <= value <= most:
        return []
    return [field.invalid(path, value, f"must be between {least} and {most}, inclusive")]


def pod_spec(path: str, spec: core.PodSpec, *, in_template: bool = True) -> list[Cause]:
    errors: list[Cause] = []
    if spec.volumes:
        errors += volumes.volumes(f"{path}.volumes", spec.volumes)
    pod = containers.around(spec)
    if spec.resourceClaims:
        errors += _resource_claims(f"{path}.resourceClaims", spec)
    errors += containers.containers(f"{path}.containers", spec.containers, pod)
    if spec.initContainers:
        errors += containers.init_containers(
            f"{path}.initContainers", spec.initContainers, spec.containers, pod
        )
    if spec.ephemeralContainers:
        errors += containers.ephemeral_containers(f"{path}.ephemeralContainers", spec, pod)
    if spec.hostNetwork:
        errors += _host_network(path, spec, in_template=in_template)
    if spec.HasField("resources"):
        errors += _pod_resources(f"{path}.resources", spec)
    if spec.restartPolicy not in _RESTART_POLICIES:
        errors.append(_choice(f"{path}.restartPolicy", spec.restartPolicy, _RESTART_POLICIES))
    if spec.dnsPolicy not in _DNS_POLICIES:
        errors.append(_choice(f"{path}.dnsPolicy", spec.dnsPolicy, _DNS_POLICIES))
    if spec.nodeSelector:
        errors += validate_labels(f"{path}.nodeSelector", spec.nodeSelector)
    if spec.serviceAccountName:
        errors += _names(f"{path}.serviceAccountName", spec.serviceAccountName)
    if spec.nodeName:
        errors += _names(f"{path}.nodeName", spec.nodeName)
    if spec.HasField("activeDeadlineSeconds"):
        errors += in_range(f"{path}.activeDeadlineSeconds", spec.activeDeadlineSeconds, 1, INT32_MAX)
    if spec.hostname:
        errors += [
            field.invalid(f"{path}.hostname", spec.hostname, problem)
            for problem in names.dns_label(spec.hostname)
        ]
    if spec.subdomain:
        errors += [
            field.invalid(f"{path}.subdomain", spec.subdomain, problem)
            for problem in names.dns_label(spec.subdomain)
        ]
    if spec.tolerations:
        errors += scheduling_terms.tolerations(f"{path}.tolerations", spec.tolerations)
    if spec.HasField("affinity"):
        errors += scheduling_terms.affinity(f"{path}.affinity", spec.affinity)
    if spec.topologySpreadConstraints:
        errors += scheduling_terms.spread(f"{path}.topologySpreadConstraints", spec.topologySpreadConstraints)
    if spec.schedulingGates:
        errors += scheduling_terms.gates(f"{path}.schedulingGates", spec.schedulingGates)
    if spec.priorityClassName:
        errors += _names(f"{path}.priorityClassName", spec.priorityClassName)
    if spec.HasField("preemptionPolicy") and spec.preemptionPolicy not in _PREEMPTION_POLICIES:
        errors.append(_choice(f"{path}.preemptionPolicy", spec.preemptionPolicy, _PREEMPTION_POLICIES))
    if spec.HasField("os"):
        if spec.os.name not in ("linux", "windows"):
            errors.append(_os_problem(f"{path}.os", spec.os.name))
        else:
            errors += security.of_os(path, spec)
    if spec.securityContext.ListFields():
        at = f"{path}.securityContext"
        errors += security.of_pod(at, spec.securityContext)
        if spec.securityContext.sysctls:
            errors += _sysctls(f"{at}.sysctls", spec)
    if spec.HasField("shareProcessNamespace") and spec.shareProcessNamespace and spec.hostPID:
        errors.append(
            field.invalid(
                f"{path}.securityContext.shareProcessNamespace",
                spec.shareProcessNamespace,
                "ShareProcessNamespace and HostPID cannot both be enabled",
            )
        )
    if spec.HasField("hostUsers"):
        errors += security.of_host_users(path, spec)
    if spec.HasField("dnsConfig") or spec.dnsPolicy == "None":
        errors += dns.config(f"{path}.dnsConfig", spec)
    if spec.hostAliases:
        errors += dns.host_aliases(f"{path}.hostAliases", spec)
    if spec.readinessGates:
        errors += _readiness_gates(f"{path}.readinessGates", spec)
    if spec.HasField("runtimeClassName"):
        errors += _names(f"{path}.runtimeClassName", spec.runtimeClassName)
    for name in spec.overhead:
        at = f"{path}.overhead[{name}]"
        errors += quantities.container_resource_name(at, name)
        errors += quantities.amount(at, name, spec.overhead[name])
    return errors


def _choice(path: str, value: str, choices: tuple[str, ...]) -> Cause:
    return field.not_supported(path, value, choices) if value else field.required(path)


def _names(path: str, name: str) -> list[Cause]:
    return [field.invalid(path, name, problem) for problem in names.dns_subdomain(name)]


def _readiness_gates(path: str, spec: core.PodSpec) -> list[Cause]:
    return [
        field.invalid(f"{path}[{index}].conditionType", gate.conditionType, problem)
        for index, gate in enumerate(spec.readinessGates)
        for problem in names.qualified_name(gate.conditionType)
    ]


def _os_problem(path: str, name: str) -> Cause:
    choices = ("linux", "windows")
    return (
        field.not_supported(path, name, choices)
        if name
        else field.required(f"{path}.name", "cannot be empty")
    )


def _host_network(path: str, spec: core.PodSpec, *, in_template: bool) -> list[Cause]:
    """On the host's network a container's port is the host's; templates may leave it to the defaults."""
    problem = "must match `containerPort` when `hostNetwork` is true"
    return [
        field.invalid(f"{path}.containers[{index}].ports[{number}].hostPort", port.hostPort, problem)
        for index, container in enumerate(spec.containers)
        for number, port in enumerate(container.ports)
        if (port.hostPort or not in_template) and port.hostPort != port.containerPort
    ]


_NET_SYSCTLS = ("net.",)
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "fs.mqueue.")


def _sysctls(path: str, spec: core.PodSpec) -> list[Cause]:
    errors: list[Cause] = []
    seen: set[str] = set()
    for index, sysctl in enumerate(spec.securityContext.sysctls):
        at = f"{path}[{index}].name"
        if not sysctl.name:
            errors.append(field.required(at))
        elif len(sysctl.name) > _SYSCTL_LENGTH_MAX or not re.fullmatch(
            _SYSCTL_PATTERN, sysctl.name, re.ASCII
        ):
            problem = f"must have at most {_SYSCTL_LENGTH_MAX} characters and match regex ^{_SYSCTL_PATTERN}$"
            errors.append(field.invalid(at, sysctl.name, problem))
        elif sysctl.name in seen:
            errors.append(field.duplicate(at, sysctl.name))
        name = sysctl.name.replace("/", ".")
        for shared, prefixes, where in (
            (spec.hostNetwork, _NET_SYSCTLS, "hostNetwork"),
            (spec.hostIPC, (*_IPC_SYSCTLS, "kernel.sem"), "hostIPC"),
        ):
            if shared and name.startswith(prefixes):
                problem = f"may not be specified when '{where}' is true"
                errors.append(field.invalid(at, sysctl.name, problem))
        seen.add(sysctl.name)
    return errors


def _resource_claims(path: str, spec: core.PodSpec) -> list[Cause]:
    errors: list[Cause] = []
    seen: set[str] = set()
    for index, claim in enumerate(spec.resourceClaims):
        at = f"{path}[{index}]"
        if not claim.name:
            errors.append(field.required(f"{at}.name"))
        elif claim.name in seen:
            errors.append(field.duplicate(f"{at}.name", claim.name))
        else:
            errors += [
                field.invalid(f"{at}.name", claim.name, problem) for problem in names.dns_label(claim.name)
            ]
        seen.add(claim.name)
        direct, template = claim.HasField("resourceClaimName"), claim.HasField("resourceClaimTemplateName")
        if direct == template:
            value = {
                "Name": claim.name,
                "ResourceClaimName": claim.resourceClaimName if direct else None,
                "ResourceClaimTemplateName": claim.resourceClaimTemplateName if template else None,
            }
            choices = ("`resourceClaimName`", "`resourceClaimTemplateName`")
            problem = (
                f"at most one of {' or '.join(choices)} may be specified"
                if direct
                else f"must specify one of: {', '.join(choices)}"
            )
            errors.append(field.invalid(at, value, problem))
        if direct:
            errors += _names(f"{at}.resourceClaimName", claim.resourceClaimName)
        if template:
            errors += _names(f"{at}.resourceClaimTemplateName", claim.resourceClaimTemplateName)
    return errors


def _pod_resources(path: str, spec: core.PodSpec) -> list[Cause]:
    """What a pod as a whole asks for: at least what its containers ask for together."""
    resources = spec.resources
    errors: list[Cause] = []
    if resources.claims:
        errors.append(field.forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    errors += quantities.requirements(path, resources.requests, resources.limits, pod_level=True)
    errors += _against_containers(path, spec)
    return errors


def _against_containers(path: str, spec: core.PodSpec) -> list[Cause]:
    from machinery.defaults.pod import container_requests

    errors: list[Cause] = []
    resources = spec.resources
    for name in sorted(resources.requests):
        total = container_requests(spec, name)
        if total is not None and total > Quantity.parse(resources.requests[name].string):
            errors.append(
                field.invalid(
                    f"{path}.requests[{name}]",
                    resources.requests[name].string,
                    f"must be greater than or equal to aggregate container requests of {total}",
                )
            )
    for index, container in enumerate(spec.containers):
        for name in sorted(resources.limits):
            limits = container.resources.limits
            if name in limits and Quantity.parse(limits[name].string) > Quantity.parse(
                resources.limits[name].string
            ):
                at = path.removesuffix("resources") + f"containers[{index}].resources.limits"
                errors.append(
                    field.invalid(
                        at,
                        limits[name].string,
                        f"must be less than or equal to pod limits of {resources.limits[name].string}",
                    )
                )
    return errors
