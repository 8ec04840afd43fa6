"""A pod's spec, in pods and in templates of pods (kube-apiserver 1.36, ValidatePodSpec).

Paths begin with the caller's ("spec", "spec.template.spec").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nominee.apiserver.validation import field, names, scheduling_terms
from nominee.apiserver.validation.objects.metadata import validate_labels
from nominee.apiserver.validation.pods import containers, dns
from nominee.apiserver.validation.pods import (
    resources as pod_resources,
)
from nominee.apiserver.validation.pods.options import PodOptions
from nominee.apiserver.validation.pods.security import contexts as security
from nominee.apiserver.validation.pods.security import windows
from nominee.apiserver.validation.pods.volumes import volumes
from nominee.apiserver.validation.values import quantities
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

INT32_MAX = 2**31 - 1
# What Linux has room for.
_HOSTNAME_OVERRIDE_MAX = 64
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_DEFAULT_OPTIONS = PodOptions()
_NO_VOLUMES: dict[str, core.VolumeSource] = {}


def in_range(path: str, value: int, least: int, most: int) -> list[Cause]:
    if least <= value <= most:
        return []
    return [field.invalid(path, value, f"must be between {least} and {most}, inclusive")]


def pod_spec(
    path: str,
    spec: core.PodSpec,
    options: PodOptions = _DEFAULT_OPTIONS,
    *,
    in_template: bool = True,
    pod: str = "",
) -> list[Cause]:
    """Check the spec of a pod, or of a template, in upstream's order; `pod` is the name, "" in templates."""
    errors: list[Cause] = []
    known: Mapping[str, core.VolumeSource] = _NO_VOLUMES
    if spec.volumes:
        known, errors = volumes.volumes(f"{path}.volumes", spec.volumes, pod)
    around = containers.around(spec, known)
    if spec.resourceClaims:
        errors += _resource_claims(f"{path}.resourceClaims", spec)
    errors += containers.containers(f"{path}.containers", spec.containers, around)
    if spec.initContainers:
        errors += containers.init_containers(
            f"{path}.initContainers", spec.initContainers, spec.containers, around
        )
    if spec.ephemeralContainers:
        errors += containers.ephemeral_containers(f"{path}.ephemeralContainers", spec, around)
    if spec.HasField("resources"):
        errors += pod_resources.pod_resources(f"{path}.resources", spec)
    if spec.hostNetwork:
        errors += _host_network(path, spec, in_template=in_template)
    if spec.restartPolicy not in _RESTART_POLICIES:
        errors += field.choice(f"{path}.restartPolicy", spec.restartPolicy, _RESTART_POLICIES)
    if spec.dnsPolicy not in _DNS_POLICIES:
        errors += field.choice(f"{path}.dnsPolicy", spec.dnsPolicy, _DNS_POLICIES)
    if spec.nodeSelector:
        errors += validate_labels(f"{path}.nodeSelector", spec.nodeSelector)
    secured = bool(spec.securityContext.ListFields())
    if secured or spec.shareProcessNamespace:
        errors += security.of_pod(f"{path}.securityContext", spec)
    errors += _placement(path, spec)
    if secured or any(container.HasField("securityContext") for container in spec.containers):
        errors += windows.host_processes(path, spec)
    if spec.HasField("hostUsers"):
        errors += security.of_host_users(path, spec)
    errors += _plain_fields(path, spec, options)
    for name in sorted(spec.overhead):
        # Upstream takes it for the limits of a container.
        at = f"{path}.overhead.limits[{name}]"
        errors += quantities.container_resource_name(at, name)
        errors += quantities.amount(at, name, spec.overhead[name])
    if spec.HasField("os"):
        errors += _operating_system(path, spec)
    return errors


def _placement(path: str, spec: core.PodSpec) -> Iterator[Cause]:
    if spec.HasField("affinity"):
        yield from scheduling_terms.affinity(f"{path}.affinity", spec.affinity)
    if spec.HasField("dnsConfig") or spec.dnsPolicy == "None":
        yield from dns.config(f"{path}.dnsConfig", spec)
    if spec.readinessGates:
        yield from _readiness_gates(f"{path}.readinessGates", spec)
    if spec.schedulingGates:
        yield from scheduling_terms.gates(f"{path}.schedulingGates", spec.schedulingGates)
    if spec.topologySpreadConstraints:
        yield from scheduling_terms.spread(
            f"{path}.topologySpreadConstraints", spec.topologySpreadConstraints
        )


def _plain_fields(path: str, spec: core.PodSpec, options: PodOptions) -> Iterator[Cause]:
    if spec.serviceAccountName:
        yield from _names(f"{path}.serviceAccountName", spec.serviceAccountName)
    if spec.nodeName:
        yield from _names(f"{path}.nodeName", spec.nodeName)
    if spec.HasField("activeDeadlineSeconds"):
        yield from in_range(f"{path}.activeDeadlineSeconds", spec.activeDeadlineSeconds, 1, INT32_MAX)
    for name in ("hostname", "subdomain"):
        if value := getattr(spec, name):
            yield from field.check(f"{path}.{name}", value, names.dns_label)
    if spec.hostnameOverride:
        yield from _hostname_override(path, spec)
    if spec.tolerations:
        yield from scheduling_terms.tolerations(f"{path}.tolerations", spec.tolerations, options)
    if spec.hostAliases:
        yield from dns.host_aliases(f"{path}.hostAliases", spec)
    if spec.priorityClassName:
        yield from _names(f"{path}.priorityClassName", spec.priorityClassName)
    if spec.HasField("runtimeClassName"):
        yield from _names(f"{path}.runtimeClassName", spec.runtimeClassName)
    if spec.HasField("schedulingGroup") and (group := spec.schedulingGroup.podGroupName):
        yield from _names(f"{path}.schedulingGroup.podGroupName", group)
    if spec.HasField("preemptionPolicy") and spec.preemptionPolicy not in _PREEMPTION_POLICIES:
        yield from field.choice(f"{path}.preemptionPolicy", spec.preemptionPolicy, _PREEMPTION_POLICIES)


def _hostname_override(path: str, spec: core.PodSpec) -> Iterator[Cause]:
    """Check hostnameOverride (KEP-4762); the text for fields that it excludes is ours."""
    at, value = f"{path}.hostnameOverride", spec.hostnameOverride
    yield from _names(at, value)
    if len(value.encode()) > _HOSTNAME_OVERRIDE_MAX:
        yield field.too_long(at, _HOSTNAME_OVERRIDE_MAX)
    for name in ("setHostnameAsFQDN", "hostNetwork"):
        if getattr(spec, name):
            yield field.forbidden(f"{path}.{name}", "must not be true when hostnameOverride is set")


def _names(path: str, name: str) -> list[Cause]:
    return field.check(path, name, names.dns_subdomain)


def _readiness_gates(path: str, spec: core.PodSpec) -> list[Cause]:
    return [
        field.invalid(f"{path}[{index}].conditionType", gate.conditionType, problem)
        for index, gate in enumerate(spec.readinessGates)
        for problem in names.qualified_name(gate.conditionType)
    ]


def _operating_system(path: str, spec: core.PodSpec) -> list[Cause]:
    name = spec.os.name
    if not name:
        return [field.required(f"{path}.os.name", "cannot be empty")]
    if name not in ("linux", "windows"):
        return [field.not_supported(f"{path}.os", name, ("linux", "windows"))]
    return security.of_os(path, spec)


def _host_network(path: str, spec: core.PodSpec, *, in_template: bool) -> list[Cause]:
    """On the host's network a container's port is the host's; templates may leave it to the defaults."""
    problem = "must match `containerPort` when `hostNetwork` is true"
    return [
        field.invalid(f"{path}.containers[{index}].ports[{number}].hostPort", port.hostPort, problem)
        for index, container in enumerate(spec.containers)
        for number, port in enumerate(container.ports)
        if (port.hostPort or not in_template) and port.hostPort != port.containerPort
    ]


def _resource_claims(path: str, spec: core.PodSpec) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, claim in enumerate(spec.resourceClaims):
        at = f"{path}[{index}]"
        if not claim.name:
            yield field.required(f"{at}.name")
        elif claim.name in seen:
            yield field.duplicate(f"{at}.name", claim.name)
        else:
            yield from field.check(f"{at}.name", claim.name, names.dns_label)
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
            yield field.invalid(at, value, problem)
        if direct:
            yield from _names(f"{at}.resourceClaimName", claim.resourceClaimName)
        if template:
            yield from _names(f"{at}.resourceClaimTemplateName", claim.resourceClaimTemplateName)
