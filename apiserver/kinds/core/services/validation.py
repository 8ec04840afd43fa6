"""Services (kube-apiserver 1.36, ValidateService and ValidateServiceUpdate)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.core.services import addresses as service_addresses
from nominee.apiserver.kinds.core.services.addresses import is_headless
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.objects import metadata as metadata_rules
from nominee.apiserver.validation.values import addresses
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_TRAFFIC = ("Cluster", "Local")
_DISTRIBUTIONS = ("PreferClose", "PreferSameNode", "PreferSameZone")
_AFFINITY_SECONDS_MAX = 86400
_BALANCER_ONLY = "may only be used when `type` is 'LoadBalancer'"
_SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"
_INT = 0


def service(obj: core.Service) -> list[Cause]:
    """Beside its metadata."""
    spec = obj.spec
    errors = _annotations(obj)
    if not spec.ports and not is_headless(spec) and spec.type != "ExternalName":
        errors.append(field.required("spec.ports"))
    errors += _by_type(spec)
    seen: set[str] = set()
    for index, port in enumerate(spec.ports):
        errors += _port(f"spec.ports[{index}]", port, seen, named=len(spec.ports) > 1)
    errors += metadata_rules.validate_labels("spec.selector", spec.selector)
    errors += _affinity(spec)
    errors += service_addresses.check_families(spec)
    for index, address in enumerate(spec.externalIPs):
        at = f"spec.externalIPs[{index}]"
        errors += addresses.ip_address(at, address) or addresses.not_special(at, address)
    if spec.type not in _TYPES:
        errors.append(_choice("spec.type", spec.type, _TYPES))
    errors += _twice(spec)
    errors += _source_ranges(obj)
    if spec.HasField("allocateLoadBalancerNodePorts") and spec.type != "LoadBalancer":
        errors.append(field.forbidden("spec.allocateLoadBalancerNodePorts", _BALANCER_ONLY))
    elif spec.type == "LoadBalancer" and not spec.HasField("allocateLoadBalancerNodePorts"):
        errors.append(field.required("allocateLoadBalancerNodePorts"))
    errors += _balancer_class(spec)
    return [*errors, *_traffic(spec)]


def _choice(path: str, value: str, choices: tuple[str, ...]) -> Cause:
    return field.not_supported(path, value, choices) if value else field.required(path)


def _annotations(obj: core.Service) -> list[Cause]:
    found = obj.metadata.annotations
    hints, mode = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"
    if hints in found and mode in found and found[hints] != found[mode]:
        problem = f"must match annotations[{hints}] when both are specified"
        return [field.invalid(f"metadata.annotations[{mode}]", found[mode], problem)]
    return []


def _by_type(spec: core.ServiceSpec) -> Iterator[Cause]:
    if spec.type in ("LoadBalancer", "NodePort") and is_headless(spec):
        problem = f"may not be set to 'None' for {spec.type} services"
        yield field.invalid("spec.clusterIPs[0]", "None", problem)
    if spec.type == "ExternalName":
        problem = "may not be set for ExternalName services"
        for name, present in (
            ("clusterIPs", bool(spec.clusterIPs)),
            ("ipFamilies", bool(spec.ipFamilies)),
            ("ipFamilyPolicy", spec.HasField("ipFamilyPolicy")),
        ):
            if present:
                yield field.forbidden(f"spec.{name}", problem)
        name = spec.externalName.removesuffix(".")
        if not name:
            yield field.required("spec.externalName")
        yield from field.problems("spec.externalName", name, names.dns_subdomain(name) if name else ())


def _port(path: str, port: core.ServicePort, seen: set[str], *, named: bool) -> list[Cause]:
    errors: list[Cause] = []
    if port.name:
        errors += field.check(f"{path}.name", port.name, names.dns_label)
        errors += field.unique(f"{path}.name", port.name, seen)
    elif named:
        errors.append(field.required(f"{path}.name"))
    errors += addresses.port(f"{path}.port", port.port)
    if port.protocol not in _PROTOCOLS:
        errors.append(_choice(f"{path}.protocol", port.protocol, _PROTOCOLS))
    target = port.targetPort
    errors += addresses.port_number_or_name(f"{path}.targetPort", target.type, target.intVal, target.strVal)
    if port.HasField("appProtocol"):
        errors += field.check(f"{path}.appProtocol", port.appProtocol, names.qualified_name)
    return errors


def _affinity(spec: core.ServiceSpec) -> list[Cause]:
    errors: list[Cause] = []
    if spec.sessionAffinity not in _AFFINITIES:
        errors.append(_choice("spec.sessionAffinity", spec.sessionAffinity, _AFFINITIES))
    path = "spec.sessionAffinityConfig"
    if spec.sessionAffinity == "None" and spec.HasField("sessionAffinityConfig"):
        errors.append(field.forbidden(path, "must not be set when session affinity is None"))
    if spec.sessionAffinity == "ClientIP":
        when = "when session affinity type is ClientIP"
        if not spec.HasField("sessionAffinityConfig"):
            return [*errors, field.required(path, when)]
        if not spec.sessionAffinityConfig.HasField("clientIP"):
            return [*errors, field.required(f"{path}.clientIP", when)]
        client = spec.sessionAffinityConfig.clientIP
        if not client.HasField("timeoutSeconds"):
            errors.append(field.required(f"{path}.clientIP.timeoutSeconds", when))
        elif not 0 < client.timeoutSeconds <= _AFFINITY_SECONDS_MAX:
            problem = f"must be greater than 0 and less than {_AFFINITY_SECONDS_MAX}"
            errors.append(field.invalid(f"{path}.clientIP.timeoutSeconds", client.timeoutSeconds, problem))
    return errors


def _twice(spec: core.ServiceSpec) -> list[Cause]:
    errors: list[Cause] = []
    if spec.type == "ClusterIP":
        errors += [
            field.forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
            for index, port in enumerate(spec.ports)
            if port.nodePort
        ]
    on_nodes: set[tuple[str, int]] = set()
    for index, port in enumerate(spec.ports):
        if port.nodePort:
            if (port.protocol, port.nodePort) in on_nodes:
                errors.append(field.duplicate(f"spec.ports[{index}].nodePort", port.nodePort))
            on_nodes.add((port.protocol, port.nodePort))
    ports: set[tuple[str, int]] = set()
    for index, port in enumerate(spec.ports):
        if (port.protocol, port.port) in ports:
            shown = {
                "Name": "",
                "Protocol": port.protocol,
                "AppProtocol": None,
                "Port": port.port,
                "TargetPort": 0,
                "NodePort": 0,
            }
            errors.append(field.duplicate(f"spec.ports[{index}]", shown))
        ports.add((port.protocol, port.port))
    return errors


def _source_ranges(obj: core.Service) -> Iterator[Cause]:
    """Field or annotation; the field's path begins with a capital, as upstream's."""
    spec = obj.spec
    if spec.loadBalancerSourceRanges:
        path = "spec.LoadBalancerSourceRanges"
        if spec.type != "LoadBalancer":
            yield field.forbidden(path, _BALANCER_ONLY)
        for index, value in enumerate(spec.loadBalancerSourceRanges):
            yield from addresses.ip_range(f"{path}[{index}]", value.strip())
    elif _SOURCE_RANGES in obj.metadata.annotations:
        path = f"metadata.annotations[{_SOURCE_RANGES}]"
        if spec.type != "LoadBalancer":
            yield field.forbidden(path, _BALANCER_ONLY)
        value = obj.metadata.annotations[_SOURCE_RANGES].strip()
        for each in value.split(",") if value else ():
            yield from addresses.ip_range(path, each.strip())


def _balancer_class(spec: core.ServiceSpec) -> list[Cause]:
    if not spec.HasField("loadBalancerClass"):
        return []
    if spec.type != "LoadBalancer":
        return [field.forbidden("spec.loadBalancerClass", _BALANCER_ONLY)]
    return field.check("spec.loadBalancerClass", spec.loadBalancerClass, names.qualified_name)


def externally_accessible(spec: core.ServiceSpec) -> bool:
    return spec.type in ("LoadBalancer", "NodePort") or (spec.type == "ClusterIP" and bool(spec.externalIPs))


def needs_health_check(spec: core.ServiceSpec) -> bool:
    return spec.type == "LoadBalancer" and spec.externalTrafficPolicy == "Local"


def _traffic(spec: core.ServiceSpec) -> Iterator[Cause]:
    path, policy = "spec.externalTrafficPolicy", spec.externalTrafficPolicy
    if not externally_accessible(spec):
        if policy:
            yield field.invalid(path, policy, "may only be set for externally-accessible services")
    elif policy not in _TRAFFIC:
        yield _choice(path, policy, _TRAFFIC)
    path = "spec.healthCheckNodePort"
    if needs_health_check(spec):
        if spec.healthCheckNodePort == 0:
            yield field.required(path)
        else:
            yield from addresses.port(path, spec.healthCheckNodePort)
    elif spec.healthCheckNodePort:
        problem = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield field.invalid(path, spec.healthCheckNodePort, problem)
    path = "spec.internalTrafficPolicy"
    if not spec.HasField("internalTrafficPolicy"):
        if spec.type in ("NodePort", "LoadBalancer", "ClusterIP"):
            yield field.required(path)
    elif spec.internalTrafficPolicy not in _TRAFFIC:
        yield field.not_supported(path, spec.internalTrafficPolicy, _TRAFFIC)
    if spec.HasField("trafficDistribution") and spec.trafficDistribution not in _DISTRIBUTIONS:
        yield field.not_supported("spec.trafficDistribution", spec.trafficDistribution, _DISTRIBUTIONS)


def change(new: core.Service, old: core.Service) -> Iterator[Cause]:
    """Check the fields that may not change."""
    yield from metadata_rules.object_meta_update(new.metadata, old.metadata)
    yield from service_addresses.changes(new.spec, old.spec)
    if new.spec.type == old.spec.type == "LoadBalancer":
        before, after = (_class(each.spec) for each in (old, new))
        if before != after:
            yield field.invalid("spec.loadBalancerClass", after, "may not change once set")
    yield from _balancer_class(new.spec)
    checked = needs_health_check(new.spec) and needs_health_check(old.spec)
    if checked and new.spec.healthCheckNodePort != old.spec.healthCheckNodePort:
        yield field.forbidden("spec.healthCheckNodePort", field.IMMUTABLE)


def _class(spec: core.ServiceSpec) -> str | None:
    return spec.loadBalancerClass if spec.HasField("loadBalancerClass") else None


def status_update(new: core.Service, old: core.Service) -> list[Cause]:
    """Check a changed status (ValidateServiceStatusUpdate)."""
    errors: list[Cause] = []
    path = "status.loadBalancer.ingress"
    ingresses = new.status.loadBalancer.ingress
    if new.spec.type != "LoadBalancer" and ingresses:
        return [*errors, field.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    for index, ingress in enumerate(ingresses):
        at = f"{path}[{index}]"
        if ingress.ip:
            errors += addresses.ip_address(f"{at}.ip", ingress.ip)
            if not ingress.HasField("ipMode"):
                errors.append(field.required(f"{at}.ipMode", "must be specified when `ip` is set"))
        elif ingress.HasField("ipMode"):
            errors.append(field.forbidden(f"{at}.ipMode", "may not be specified when `ip` is not set"))
        if ingress.ip and ingress.HasField("ipMode") and ingress.ipMode not in ("Proxy", "VIP"):
            errors.append(field.not_supported(f"{at}.ipMode", ingress.ipMode, ("Proxy", "VIP")))
        if ingress.hostname:
            errors += field.check(f"{at}.hostname", ingress.hostname, names.dns_subdomain)
            if addresses.parse(ingress.hostname) is not None:
                problem = "must be a DNS name, not an IP address"
                errors.append(field.invalid(f"{at}.hostname", ingress.hostname, problem))
    return errors
