"""IngressClasses (kube-apiserver 1.36, pkg/apis/networking/validation ValidateIngressClass)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy, UpdateCheck
from nominee.apiserver.printing.cells import NONE
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.objects.typed_references import typed_reference
from nominee.apiserver.validation.values import paths
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core, networking

_CONTROLLER_BYTES_MAX = 250
_SCOPES = ("Cluster", "Namespace")


def _validate(obj: networking.IngressClass) -> Iterator[Cause]:
    spec = obj.spec
    if len(spec.controller.encode()) > _CONTROLLER_BYTES_MAX:
        yield field.too_long("spec.controller", _CONTROLLER_BYTES_MAX)
    yield from paths.domain_prefixed("spec.controller", spec.controller)
    if spec.HasField("parameters"):
        yield from _parameters("spec.parameters", spec.parameters)


def _validate_change(new: networking.IngressClass, old: networking.IngressClass) -> list[Cause]:
    return field.immutable("spec.controller", new.spec.controller, old.spec.controller)


def _parameters(path: str, found: networking.IngressClassParametersReference) -> list[Cause]:
    """validateIngressClassParametersReference."""
    reference = core.TypedLocalObjectReference(kind=found.kind, name=found.name)
    if found.HasField("aPIGroup"):
        reference.apiGroup = found.aPIGroup
    errors = list(typed_reference(path, reference))
    if not found.HasField("scope"):
        return [*errors, field.required(f"{path}.scope")]
    at = f"{path}.namespace"
    if found.scope not in _SCOPES:
        errors.append(field.not_supported(f"{path}.scope", found.scope, _SCOPES))
    elif found.scope == "Cluster":
        if found.HasField("namespace"):
            errors.append(field.forbidden(at, "`parameters.scope` is set to 'Cluster'"))
    elif not found.HasField("namespace"):
        errors.append(field.required(at, "`parameters.scope` is set to 'Namespace'"))
    else:
        errors += field.check(at, found.namespace, names.dns_label)
    return errors


def _row(obj: networking.IngressClass, now: float) -> Cells:
    shown, parameters = NONE, obj.spec.parameters
    if obj.spec.HasField("parameters"):
        group = f".{parameters.aPIGroup}" if parameters.aPIGroup else ""
        shown = f"{parameters.kind}{group}/{parameters.name}"
    return [obj.spec.controller, shown]


RULES = KindRules(
    kind=kinds.INGRESS_CLASS,
    strategy=SimpleStrategy(
        kinds.INGRESS_CLASS,
        _validate,
        _validate_change,
        updates=UpdateCheck.OBJECT,
        counts_generation=True,
    ),
    columns=Columns(
        _row,
        NAME,
        Column("Controller", "Controller that is responsible for handling this class"),
        Column("Parameters", "A reference to a resource with additional parameters"),
        AGE,
    ),
)
