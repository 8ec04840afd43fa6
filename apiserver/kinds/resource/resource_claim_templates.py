"""ResourceClaimTemplates (kube-apiserver 1.36, pkg/apis/resource/validation)."""

from __future__ import annotations

from nominee.apiserver.kinds.resource.claim_specs import claim_spec
from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy, UpdateCheck
from nominee.apiserver.printing.columns import NAME_AND_AGE
from nominee.apiserver.validation import field, go_dump
from nominee.apiserver.validation.objects import metadata
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import devices


def _validate(obj: devices.ResourceClaimTemplate) -> list[Cause]:
    meta = obj.spec.metadata
    errors = metadata.validate_annotations("spec.metadata.annotations", meta.annotations)
    errors += metadata.validate_labels("spec.metadata.labels", meta.labels)
    return errors + claim_spec("spec.spec", obj.spec.spec)


def _validate_change(new: devices.ResourceClaimTemplate, old: devices.ResourceClaimTemplate) -> list[Cause]:
    return [] if new.spec == old.spec else [field.invalid("spec", go_dump.dump(new.spec), field.IMMUTABLE)]


RULES = KindRules(
    kind=kinds.RESOURCE_CLAIM_TEMPLATE,
    strategy=SimpleStrategy(
        kinds.RESOURCE_CLAIM_TEMPLATE, _validate, _validate_change, updates=UpdateCheck.NOTHING
    ),
    columns=NAME_AND_AGE,
    delete_response=DeleteResponse.OBJECT,
)
