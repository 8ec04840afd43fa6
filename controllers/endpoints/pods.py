"""A pod's endpoints of a Service. Pure.

Source: Kubernetes 1.36, k8s.io/endpointslice/util (ShouldPodBeInEndpoints, podEndpointsChanged) and FindPort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import ip_address
from typing import Final, Literal, TypeVar

from nominee.machinery.api.objects import condition_is, is_terminating
from nominee.machinery.api.pb import core, discovery
from nominee.machinery.resources.pod_resources import is_sidecar

P = TypeVar("P", core.EndpointPort, discovery.EndpointPort)
AddressType = Literal["IPv4", "IPv6"]
HEADLESS_LABEL: Final = "service.kubernetes.io/headless"
TRIGGER_TIME: Final = "endpoints.kubernetes.io/last-change-trigger-time"
NO_CLUSTER_IP: Final = "None"
_STRING: Final = 1
"""`type` of an IntOrString that is a string."""


def has_endpoints(service: core.Service) -> bool:
    """Report whether a Service's endpoints are kept: it selects pods, and is no ExternalName."""
    return bool(service.spec.selector) and service.spec.type != "ExternalName"


def is_headless(service: core.Service) -> bool:
    """Report whether a Service has no address of its own, as its endpoints' label says."""
    return service.spec.clusterIP in ("", NO_CLUSTER_IP)


def is_ready(pod: core.Pod) -> bool:
    return condition_is(pod.status.conditions, "Ready")


def may_be_endpoint(pod: core.Pod, *, terminating: bool) -> bool:
    """Report whether a pod has an address and has not ended; one that terminates counts only if asked for."""
    if pod.status.phase in ("Failed", "Succeeded") or not (pod.status.podIP or pod.status.podIPs):
        return False
    return terminating or not is_terminating(pod)


def addresses_of(pod: core.Pod, address_type: AddressType) -> list[str]:
    """Return the pod's addresses of a family, in canonical form."""
    parsed = [_parsed(row.ip) for row in pod.status.podIPs]
    return [text for family, text in parsed if family == address_type]


@lru_cache(maxsize=16384)
def _parsed(ip: str) -> tuple[AddressType, str]:
    """Return an address's family and canonical form."""
    address = ip_address(ip)
    return "IPv6" if address.version == 6 else "IPv4", str(address)


def port_of(pod: core.Pod, port: core.ServicePort) -> int | None:
    """Return the number of a Service's target port in a pod, None where no container names that port."""
    target = port.targetPort
    if target.type != _STRING:
        return target.intVal
    sidecars = (container for container in pod.spec.initContainers if is_sidecar(container))
    for container in (*pod.spec.containers, *sidecars):
        for own in container.ports:
            if own.name == target.strVal and own.protocol == port.protocol:
                return own.containerPort
    return None


def endpoint_port(make: Callable[..., P], port: core.ServicePort | core.EndpointPort, number: int) -> P:
    """Return a port of endpoints with this number, made by the class of its message."""
    made = make(name=port.name, protocol=port.protocol, port=number)
    if port.HasField("appProtocol"):
        made.appProtocol = port.appProtocol
    return made


def hostname_of(pod: core.Pod, service: core.Service) -> str:
    """Return the pod's hostname in the Service's DNS, "" where it has no name there."""
    spec, metadata = pod.spec, service.metadata
    named = spec.subdomain == metadata.name and pod.metadata.namespace == metadata.namespace
    return spec.hostname if named else ""


def target_of(pod: core.Pod) -> core.ObjectReference:
    metadata = pod.metadata
    return core.ObjectReference(
        kind="Pod", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid
    )


def changes_endpoints(old: core.Pod, new: core.Pod) -> bool:
    """Report whether an update of a pod changes anything that its endpoints show."""
    return _shown(old) != _shown(new)


def _shown(pod: core.Pod) -> tuple[object, ...]:
    spec, status = pod.spec, pod.status
    return (
        pod.metadata.uid,
        is_terminating(pod),
        is_ready(pod),
        status.phase in ("Failed", "Succeeded"),
        status.podIP,
        tuple(row.ip for row in status.podIPs),
        spec.nodeName,
        spec.hostname,
        spec.subdomain,
    )


def ready_since(pod: core.Pod) -> int:
    """Return when the pod became ready or unready, in seconds since the epoch; 0 where that is unknown."""
    rows: Iterable[core.PodCondition] = pod.status.conditions
    return next((row.lastTransitionTime.seconds for row in rows if row.type == "Ready"), 0)
