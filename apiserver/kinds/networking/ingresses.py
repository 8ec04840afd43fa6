"""Ingresses (kube-apiserver 1.36, pkg/apis/networking/validation ValidateIngressCreate and others)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import Environment, StatusStrategy, Strategy
from nominee.apiserver.printing.cells import NONE, balancer_addresses
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.objects import metadata
from nominee.apiserver.validation.objects.typed_references import typed_reference
from nominee.apiserver.validation.values import addresses
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import networking

Ingress = networking.Ingress

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_BAD_SUFFIXES = ("/..", "/.")


class IngressStrategy(Strategy[Ingress]):
    """The main resource."""

    counts_generation = True

    def validate(self, new: Ingress, env: Environment) -> list[Cause]:
        rules = _Rules(service_name=_service_name(env))
        return [*self.validate_metadata(new), *rules.spec(new.spec), *_class_annotation(new)]

    def validate_update(self, new: Ingress, old: Ingress, env: Environment) -> list[Cause]:
        # What upstream once took may stay, as long as the stored object has it.
        strict = _Rules(service_name=_service_name(env))
        rules = _Rules(
            service_name=strict.service_name,
            any_secret=any(_secret_problems(tls.secretName) for tls in old.spec.tls),
            any_wildcard=any(
                "*" in rule.host and any(strict.rule_value("", rule.ingressRuleValue))
                for rule in old.spec.rules
            ),
        )
        changed = metadata.object_meta_update(new.metadata, old.metadata)
        return [*changed, *self.validate_metadata(new), *rules.spec(new.spec)]

    def warnings(self, new: Ingress, old: Ingress | None) -> Sequence[str]:
        if old is None and CLASS_ANNOTATION in new.metadata.annotations:
            instead = "please use 'spec.ingressClassName' instead"
            return (f'annotation "{CLASS_ANNOTATION}" is deprecated, {instead}',)
        return ()


class IngressStatusStrategy(StatusStrategy[Ingress]):
    """PUT of `status`."""

    def warnings(self, new: Ingress, old: Ingress | None) -> Sequence[str]:
        return [
            warning
            for index, ingress in enumerate(new.status.loadBalancer.ingress)
            if ingress.ip
            for warning in addresses.warnings(f"status.loadBalancer.ingress[{index}].ip", ingress.ip)
        ]


def _class_annotation(obj: Ingress) -> list[Cause]:
    value = obj.metadata.annotations.get(CLASS_ANNOTATION)
    if value is None or not obj.spec.HasField("ingressClassName") or value == obj.spec.ingressClassName:
        return []
    problem = "must match `ingressClassName` when both are specified"
    return [field.invalid(f"annotations.{CLASS_ANNOTATION}", value, problem)]


def _service_name(env: Environment) -> Callable[[str], names.Problems]:
    """Which names a Service may have (KEP-5311)."""
    relaxed = env.gates.enabled("RelaxedServiceNameValidation")
    return names.dns_label if relaxed else names.dns_1035_label


def _secret_problems(name: str) -> names.Problems:
    return names.dns_subdomain(name) if name else ()


def _host(path: str, host: str) -> list[Cause]:
    rule = names.wildcard_subdomain if "*" in host else names.dns_subdomain
    return field.check(path, host, rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """ValidateIngressSpec with its options; `any_...`: values stored by an older version are accepted."""

    service_name: Callable[[str], names.Problems]
    any_secret: bool = False
    any_wildcard: bool = False

    def spec(self, spec: networking.IngressSpec) -> Iterator[Cause]:
        if not spec.rules and not spec.HasField("defaultBackend"):
            yield field.invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
        if spec.HasField("defaultBackend"):
            yield from self._backend("spec.defaultBackend", spec.defaultBackend)
        for index, rule in enumerate(spec.rules):
            yield from self._rule(f"spec.rules[{index}]", rule)
        for index, tls in enumerate(spec.tls):
            yield from self._tls(f"spec.tls[{index}]", tls)
        if spec.HasField("ingressClassName"):
            yield from field.check("spec.ingressClassName", spec.ingressClassName, names.dns_subdomain)

    def _tls(self, path: str, tls: networking.IngressTLS) -> Iterator[Cause]:
        for index, host in enumerate(tls.hosts):
            yield from _host(f"{path}.hosts[{index}]", host)
        if not self.any_secret:
            problems = _secret_problems(tls.secretName)
            yield from field.problems(f"{path}.secretName", tls.secretName, problems)

    def _rule(self, path: str, rule: networking.IngressRule) -> Iterator[Cause]:
        at = f"{path}.host"
        if rule.host:
            if addresses.parse(rule.host) is not None:
                yield field.invalid(at, rule.host, "must be a DNS name, not an IP address")
            yield from _host(at, rule.host)
        if "*" not in rule.host or not self.any_wildcard:
            yield from self.rule_value(path, rule.ingressRuleValue)

    def rule_value(self, path: str, value: networking.IngressRuleValue) -> Iterator[Cause]:
        if not value.HasField("http"):
            return
        at = f"{path}.http.paths"
        if not value.http.paths:
            yield field.required(at)
        for index, each in enumerate(value.http.paths):
            yield from self._http_path(f"{at}[{index}]", each)

    def _http_path(self, path: str, found: networking.HTTPIngressPath) -> list[Cause]:
        if not found.HasField("pathType"):
            return [field.required(f"{path}.pathType", "pathType must be specified")]
        problems: list[str] = []
        text = found.path
        if found.pathType in ("Exact", "Prefix"):
            if not text.startswith("/"):
                problems.append("must be an absolute path")
            problems += [f"must not contain '{bad}'" for bad in _BAD_SEQUENCES if bad in text]
            problems += [f"cannot end with '{bad}'" for bad in _BAD_SUFFIXES if text.endswith(bad)]
        elif found.pathType == "ImplementationSpecific" and text and not text.startswith("/"):
            problems.append("must be an absolute path")
        errors = field.problems(f"{path}.path", text, problems)
        errors += field.one_of(f"{path}.pathType", found.pathType, _PATH_TYPES)
        return errors + self._backend(f"{path}.backend", found.backend)

    def _backend(self, path: str, backend: networking.IngressBackend) -> list[Cause]:
        resource, service = backend.HasField("resource"), backend.HasField("service")
        if resource and service:
            return [field.invalid(path, "", "cannot set both resource and service backends")]
        if resource:
            return list(typed_reference(f"{path}.resource", backend.resource))
        if not service:
            return [field.invalid(path, "", "resource or service backend is required")]
        name, port = backend.service.name, backend.service.port
        at = f"{path}.service"
        if name:
            errors = field.check(f"{at}.name", name, self.service_name)
        else:
            errors = [field.required(f"{at}.name")]
        if port.name and port.number:
            errors.append(field.invalid(path, "", "cannot set both port name & port number"))
        elif port.name:
            problems = addresses.port_name(port.name)
            errors += field.problems(f"{at}.port.name", port.name, problems)
        elif port.number:
            errors += addresses.port(f"{at}.port.number", port.number)
        else:
            errors.append(field.required(path, "port name or number is required"))
        return errors


def _validate_status(new: Ingress, _old: Ingress) -> Iterator[Cause]:
    """ValidateIngressLoadBalancerStatus."""
    for index, ingress in enumerate(new.status.loadBalancer.ingress):
        at = f"status.loadBalancer.ingress[{index}]"
        if ingress.ip:
            yield from addresses.ip_address(f"{at}.ip", ingress.ip)
        if ingress.hostname:
            host = ingress.hostname
            yield from field.check(f"{at}.hostname", host, names.dns_subdomain)
            if addresses.parse(host) is not None:
                yield field.invalid(f"{at}.hostname", host, "must be a DNS name, not an IP address")


_HOSTS_SHOWN_MAX = 3


def _hosts(rules: Sequence[networking.IngressRule]) -> str:
    """Return the cell of the first three hosts; all further rules are counted, also those of every host."""
    shown: list[str] = []
    for rule in rules:
        if len(shown) == _HOSTS_SHOWN_MAX:
            return f"{','.join(shown)} + {len(rules) - _HOSTS_SHOWN_MAX} more..."
        if rule.host:
            shown.append(rule.host)
    return ",".join(shown) or "*"


def _row(obj: Ingress, now: float) -> Cells:
    spec = obj.spec
    return [
        spec.ingressClassName if spec.HasField("ingressClassName") else NONE,
        _hosts(spec.rules),
        ",".join(balancer_addresses(obj.status.loadBalancer.ingress)),
        "80, 443" if spec.tls else "80",
    ]


RULES = KindRules(
    kind=kinds.INGRESS,
    strategy=IngressStrategy(
        kinds.INGRESS, {"status": IngressStatusStrategy(kinds.INGRESS, _validate_status)}
    ),
    columns=Columns(
        _row,
        NAME,
        Column(
            "Class",
            "The name of the IngressClass resource that should be used for additional configuration",
        ),
        Column("Hosts", "Hosts that incoming requests are matched against before the ingress rule"),
        Column("Address", "Address is a list containing ingress points for the load-balancer"),
        Column("Ports", "Ports of TLS configurations that open"),
        AGE,
    ),
)
