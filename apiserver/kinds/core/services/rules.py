"""Services: the row of their kind, its columns, selectable fields and warnings (kube-apiserver 1.36)."""

from __future__ import annotations

from nominee.apiserver.kinds.core.services import validation
from nominee.apiserver.kinds.core.services.strategy import ServiceStrategy
from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.kinds.strategy import StatusStrategy
from nominee.apiserver.objects.selectable_fields import metadata_fields, selectable
from nominee.apiserver.printing.cells import NONE, balancer_addresses
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns, wide
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core

_HINTS_ANNOTATION = "service.kubernetes.io/topology-aware-hints"


def _fields(service: core.Service) -> dict[str, str]:
    spec = service.spec
    return metadata_fields(service) | {"spec.clusterIP": spec.clusterIP, "spec.type": spec.type}


def _row(service: core.Service, now: float) -> Cells:
    spec = service.spec
    internal = spec.clusterIPs[0] if spec.clusterIPs else spec.clusterIP
    ports = [
        f"{port.port}:{port.nodePort}/{port.protocol}" if port.nodePort else f"{port.port}/{port.protocol}"
        for port in spec.ports
    ]
    return [
        spec.type,
        internal or NONE,
        _external(service),
        ",".join(ports) or NONE,
        ",".join(f"{key}={value}" for key, value in sorted(spec.selector.items())) or NONE,
    ]


def _external(service: core.Service) -> str:
    spec = service.spec
    if spec.type == "ExternalName":
        return spec.externalName or NONE
    if spec.type == "LoadBalancer":
        found = balancer_addresses(service.status.loadBalancer.ingress)
        return ",".join([*found, *spec.externalIPs]) or "<pending>"
    return ",".join(spec.externalIPs) or NONE


RULES = KindRules(
    kind=kinds.SERVICE,
    strategy=ServiceStrategy(
        kinds.SERVICE, {"status": StatusStrategy(kinds.SERVICE, validation.status_update)}
    ),
    columns=Columns(
        _row,
        NAME,
        Column("Type", "servicespec-v1#type"),
        Column("Cluster-IP", "servicespec-v1#clusterIP"),
        Column("External-IP", "servicespec-v1#externalIPs"),
        Column("Port(s)", "servicespec-v1#ports"),
        AGE,
        wide("Selector", "servicespec-v1#selector"),
    ),
    fields=selectable(core.Service, _fields),
    delete_response=DeleteResponse.OBJECT,
    created_by_update=True,
    takes_addresses=True,
)
