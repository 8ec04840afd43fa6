"""NetworkPolicies (kube-apiserver 1.36, pkg/apis/networking/validation ValidateNetworkPolicy)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy, UpdateCheck
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field
from nominee.apiserver.validation.objects.selectors import label_selector
from nominee.apiserver.validation.values import addresses
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import networking
from nominee.machinery.api.selectors import shown_label_selector

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_TYPES = ("Ingress", "Egress")
_INT = 0


def _peers(spec: networking.NetworkPolicySpec) -> Iterator[tuple[str, networking.NetworkPolicyPeer]]:
    for index, ingress in enumerate(spec.ingress):
        for number, peer in enumerate(getattr(ingress, "from")):
            yield f"spec.ingress[{index}].from[{number}]", peer
    for index, egress in enumerate(spec.egress):
        for number, peer in enumerate(egress.to):
            yield f"spec.egress[{index}].to[{number}]", peer


def _warnings(obj: networking.NetworkPolicy, _old: networking.NetworkPolicy | None) -> Iterator[str]:
    for path, peer in _peers(obj.spec):
        if peer.HasField("ipBlock"):
            yield from _range_warnings(f"{path}.ipBlock", peer.ipBlock)


def _range_warnings(path: str, block: networking.IPBlock) -> list[str]:
    found = addresses.range_warnings(f"{path}.cidr", block.cidr)
    for index, text in enumerate(getattr(block, "except")):
        found += addresses.range_warnings(f"{path}.except[{index}]", text)
    return found


def _validate(obj: networking.NetworkPolicy) -> list[Cause]:
    """ValidateNetworkPolicySpec."""
    spec = obj.spec
    errors = label_selector("spec.podSelector", spec.podSelector)
    for index, ingress in enumerate(spec.ingress):
        at = f"spec.ingress[{index}]"
        errors += _ports(f"{at}.ports", ingress.ports)
        errors += _peers_of(f"{at}.from", getattr(ingress, "from"))
    for index, egress in enumerate(spec.egress):
        at = f"spec.egress[{index}]"
        errors += _ports(f"{at}.ports", egress.ports)
        errors += _peers_of(f"{at}.to", egress.to)
    at = "spec.policyTypes"
    if len(spec.policyTypes) > len(_TYPES):
        problem = "may not specify more than two policyTypes"
        return [*errors, field.invalid(at, list(spec.policyTypes), problem)]
    return errors + [
        field.not_supported(f"{at}[{index}]", name, _TYPES)
        for index, name in enumerate(spec.policyTypes)
        if name not in _TYPES
    ]


def _validate_change(new: networking.NetworkPolicy, _old: networking.NetworkPolicy) -> Iterable[Cause]:
    """Upstream looks at the spec twice."""
    return _validate(new)


def _ports(path: str, ports: Iterable[networking.NetworkPolicyPort]) -> list[Cause]:
    return [cause for index, port in enumerate(ports) for cause in _port(f"{path}[{index}]", port)]


def _port(path: str, found: networking.NetworkPolicyPort) -> Iterator[Cause]:
    """ValidateNetworkPolicyPort."""
    if found.HasField("protocol") and found.protocol not in _PROTOCOLS:
        yield field.not_supported(f"{path}.protocol", found.protocol, _PROTOCOLS)
    at, last = f"{path}.endPort", found.HasField("endPort")
    if not found.HasField("port"):
        if last:
            yield field.invalid(at, found.endPort, "may not be specified when `port` is not specified")
    elif found.port.type == _INT:
        first = found.port.intVal
        yield from addresses.port(f"{path}.port", first)
        if last:
            if found.endPort < first:
                yield field.invalid(at, first, "must be greater than or equal to `port`")
            yield from addresses.port(at, found.endPort)
    else:
        if last:
            yield field.invalid(at, found.endPort, "may not be specified when `port` is non-numeric")
        yield from field.check(f"{path}.port", found.port.strVal, addresses.port_name)


def _peers_of(path: str, peers: Iterable[networking.NetworkPolicyPeer]) -> list[Cause]:
    return [cause for index, peer in enumerate(peers) for cause in _peer(f"{path}[{index}]", peer)]


def _peer(path: str, peer: networking.NetworkPolicyPeer) -> list[Cause]:
    """ValidateNetworkPolicyPeer."""
    errors: list[Cause] = []
    if peer.HasField("podSelector"):
        errors += label_selector(f"{path}.podSelector", peer.podSelector)
    if peer.HasField("namespaceSelector"):
        errors += label_selector(f"{path}.namespaceSelector", peer.namespaceSelector)
    selects = peer.HasField("podSelector") or peer.HasField("namespaceSelector")
    if not peer.HasField("ipBlock"):
        return errors if selects else [*errors, field.required(path, "must specify a peer")]
    errors += _block(f"{path}.ipBlock", peer.ipBlock)
    if selects:
        errors.append(field.forbidden(path, "may not specify both ipBlock and another peer"))
    return errors


def _block(path: str, block: networking.IPBlock) -> list[Cause]:
    """ValidateIPBlock."""
    if not block.cidr:
        return [field.required(f"{path}.cidr")]
    errors = addresses.ip_range(f"{path}.cidr", block.cidr)
    outer = addresses.parse_range(block.cidr)
    if outer is None:
        return errors
    for index, text in enumerate(getattr(block, "except")):
        at = f"{path}.except[{index}]"
        errors += addresses.ip_range(at, text)
        inner = addresses.parse_range(text)
        if inner is None:
            continue
        inside = inner.version == outer.version and inner.network_address in outer
        if not inside or outer.prefixlen >= inner.prefixlen:
            errors.append(field.invalid(at, text, "must be a strict subset of `cidr`"))
    return errors


def _row(obj: networking.NetworkPolicy, now: float) -> Cells:
    return [shown_label_selector(obj.spec.podSelector)]


RULES = KindRules(
    kind=kinds.NETWORK_POLICY,
    strategy=SimpleStrategy(
        kinds.NETWORK_POLICY,
        _validate,
        _validate_change,
        updates=UpdateCheck.OBJECT_FIRST,
        warnings=_warnings,
        counts_generation=True,
    ),
    columns=Columns(_row, NAME, Column("Pod-Selector", "networkpolicyspec-networking-v1#podSelector"), AGE),
)
