"""Defaults of Services (kube-apiserver 1.36). Addresses and ports are allocated later."""

from __future__ import annotations

from nominee.machinery.api.pb import core
from nominee.machinery.defaults import fields
from nominee.machinery.features.gates import Gates

_AFFINITY_TIMEOUT_SECONDS = 3 * 60 * 60
_INT = 0


def service(obj: core.Service, gates: Gates) -> None:
    """Fill in a Service."""
    spec = obj.spec
    fields.set_empty(spec, sessionAffinity="None")
    if spec.sessionAffinity == "None":
        spec.ClearField("sessionAffinityConfig")
    elif spec.sessionAffinity == "ClientIP":
        client = spec.sessionAffinityConfig.clientIP
        fields.set_absent(client, timeoutSeconds=_AFFINITY_TIMEOUT_SECONDS)
    fields.set_empty(spec, type="ClusterIP")
    for port in spec.ports:
        fields.set_empty(port, protocol="TCP")
        target = port.targetPort
        if (target.intVal == 0) if target.type == _INT else not target.strVal:
            target.type, target.intVal, target.strVal = _INT, port.port, ""
    external = spec.type in ("NodePort", "LoadBalancer") or (spec.type == "ClusterIP" and spec.externalIPs)
    if external and not spec.externalTrafficPolicy:
        spec.externalTrafficPolicy = "Cluster"
    if not spec.HasField("internalTrafficPolicy") and spec.type in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec.internalTrafficPolicy = "Cluster"
    if spec.type == "LoadBalancer":
        fields.set_absent(spec, allocateLoadBalancerNodePorts=True)
        for ingress in obj.status.loadBalancer.ingress:
            if ingress.ip and not ingress.HasField("ipMode"):
                ingress.ipMode = "VIP"
