"""For which zones and nodes an endpoint is preferred: a Service's trafficDistribution. Pure.

Source: Kubernetes 1.36, k8s.io/endpointslice/trafficdist. The older annotation
service.kubernetes.io/topology-mode, which shares endpoints out by the zones' processors, gives no hints here
(docs/design/014-endpoints-and-signing.md).
"""

from __future__ import annotations

from typing import Final

from nominee.machinery.api.pb import core, discovery

_CLOSE: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")
_MODES: Final = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode")


def distribution_of(service: core.Service) -> str:
    """Return the traffic distribution that endpoints' hints follow, "" for none."""
    annotations = service.metadata.annotations
    mode = next((annotations[name] for name in _MODES if name in annotations), "")
    found = service.spec.trafficDistribution
    return found if found in _CLOSE and mode not in ("Auto", "auto") else ""


def hint(found: discovery.EndpointSlice, distribution: str) -> bool:
    """Set the hints of a slice's endpoints in place; report whether any changed.

    Of an endpoint that is not ready they stay as they are, but where there is no distribution at all.
    """
    changed = False
    for endpoint in found.endpoints:
        if distribution and not endpoint.conditions.ready:
            continue
        hints = _hints(endpoint, distribution)
        if hints != endpoint.hints or endpoint.HasField("hints") != bool(hints.ByteSize()):
            changed = True
            endpoint.ClearField("hints")
            if hints.ByteSize():
                endpoint.hints.CopyFrom(hints)
    return changed


def _hints(endpoint: discovery.Endpoint, distribution: str) -> discovery.EndpointHints:
    hints = discovery.EndpointHints()
    if distribution and endpoint.HasField("zone"):
        hints.forZones.add(name=endpoint.zone)
    if distribution == "PreferSameNode" and endpoint.HasField("nodeName"):
        hints.forNodes.add(name=endpoint.nodeName)
    return hints
