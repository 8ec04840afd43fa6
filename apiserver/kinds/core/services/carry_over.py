"""Fields of a Service's old state that its new one keeps or loses (kube-apiserver 1.36). Pure."""

from __future__ import annotations

from nominee.apiserver.kinds.core.services import validation as validation
from nominee.machinery.api.pb import core

_ADDRESSED = ("ClusterIP", "NodePort", "LoadBalancer")
_ON_NODES = ("NodePort", "LoadBalancer")


def normalize_addresses(new: core.ServiceSpec, old: core.ServiceSpec | None) -> None:
    """Make clusterIP and clusterIPs consistent in place, for clients that know only one of them."""
    if old is None:
        if new.clusterIP and not new.clusterIPs:
            new.clusterIPs.append(new.clusterIP)
        return
    if new.clusterIP != old.clusterIP and list(new.clusterIPs) == list(old.clusterIPs):
        # A client that knows only the first one changed or cleared it.
        del new.clusterIPs[:]
        if new.clusterIP:
            new.clusterIPs.append(new.clusterIP)
    elif new.clusterIP and not new.clusterIPs:
        new.clusterIPs.append(new.clusterIP)


def patch_allocated(new: core.ServiceSpec, old: core.ServiceSpec) -> None:
    """Keep allocated values in place, where an update of the whole object omits them."""
    if new.type in _ADDRESSED and old.type in _ADDRESSED:
        new.clusterIP = new.clusterIP or old.clusterIP
        if not new.clusterIPs:
            new.clusterIPs.extend(old.clusterIPs)
    if new.type in _ON_NODES and old.type in _ON_NODES:
        used = {port.nodePort for port in new.ports if port.nodePort}
        before = {(port.protocol, port.port): port.nodePort for port in old.ports}
        for port in new.ports:
            number = 0 if port.nodePort else before.get((port.protocol, port.port), 0)
            if number and number not in used:
                port.nodePort = number
                used.add(number)
    checked = validation.needs_health_check(new) and validation.needs_health_check(old)
    if checked and not new.healthCheckNodePort:
        new.healthCheckNodePort = old.healthCheckNodePort


def drop_of_old_type(new: core.ServiceSpec, old: core.ServiceSpec) -> None:
    """Remove the fields that only the old type has, in place, unless the client changed them as well."""
    if old.type != "ExternalName" and new.type == "ExternalName":
        if (new.clusterIP, list(new.clusterIPs)) == (old.clusterIP, list(old.clusterIPs)):
            new.clusterIP = ""
            del new.clusterIPs[:]
        if list(new.ipFamilies) == list(old.ipFamilies):
            del new.ipFamilies[:]
        if new.ipFamilyPolicy == old.ipFamilyPolicy:
            new.ClearField("ipFamilyPolicy")
    ports = [port.nodePort for port in new.ports] == [port.nodePort for port in old.ports]
    if old.type in _ON_NODES and new.type not in _ON_NODES and ports:
        for port in new.ports:
            port.nodePort = 0
    checked = validation.needs_health_check(old) and not validation.needs_health_check(new)
    if checked and new.healthCheckNodePort == old.healthCheckNodePort:
        new.healthCheckNodePort = 0
    if old.type == "LoadBalancer" and new.type != "LoadBalancer":
        if new.allocateLoadBalancerNodePorts == old.allocateLoadBalancerNodePorts:
            new.ClearField("allocateLoadBalancerNodePorts")
        if new.loadBalancerClass == old.loadBalancerClass:
            new.ClearField("loadBalancerClass")
    closed = validation.externally_accessible(old) and not validation.externally_accessible(new)
    if closed and new.externalTrafficPolicy == old.externalTrafficPolicy:
        new.externalTrafficPolicy = ""
