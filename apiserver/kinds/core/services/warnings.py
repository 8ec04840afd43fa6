"""Warnings about Services (kube-apiserver 1.36, pkg/api/service/warnings.go)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.core.services.addresses import is_headless
from nominee.apiserver.validation.values import addresses
from nominee.machinery.api.pb import core

_HINTS_ANNOTATION = "service.kubernetes.io/topology-aware-hints"


def of_service(service: core.Service) -> Iterator[str]:
    """Yield the warnings in the order of upstream's GetWarningsForService."""
    spec = service.spec
    if _HINTS_ANNOTATION in service.metadata.annotations:
        instead = "service.kubernetes.io/topology-mode"
        yield f"annotation {_HINTS_ANNOTATION} is deprecated, please use {instead} instead"
    for index, address in enumerate(() if is_headless(spec) else spec.clusterIPs):
        yield from addresses.warnings(f"spec.clusterIPs[{index}]", address)
    if is_headless(spec):
        if spec.loadBalancerIP:
            yield "spec.loadBalancerIP is ignored for headless services"
        if spec.externalIPs:
            yield "spec.externalIPs is ignored for headless services"
        if spec.sessionAffinity != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    for index, address in enumerate(spec.externalIPs):
        yield from addresses.warnings(f"spec.externalIPs[{index}]", address)
    yield from addresses.warnings("spec.loadBalancerIP", spec.loadBalancerIP)
    for index, cidr in enumerate(spec.loadBalancerSourceRanges):
        yield from addresses.range_warnings(f"spec.loadBalancerSourceRanges[{index}]", cidr)
    if spec.type == "ExternalName" and spec.externalIPs:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if spec.type != "ExternalName" and spec.externalName:
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.trafficDistribution == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'
