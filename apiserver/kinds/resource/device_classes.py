"""DeviceClasses (kube-apiserver 1.36, pkg/apis/resource/validation)."""

from __future__ import annotations

from nominee.apiserver.kinds.resource import device_terms
from nominee.apiserver.kinds.rules import DeleteResponse, KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy
from nominee.apiserver.printing.columns import NAME_AND_AGE
from nominee.apiserver.validation import field, lists
from nominee.apiserver.validation.values.quantities import is_extended
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import devices


def _validate(obj: devices.DeviceClass) -> list[Cause]:
    spec = obj.spec
    errors = device_terms.selectors("spec.selectors", spec.selectors)
    errors += lists.each(
        "spec.config",
        spec.config,
        device_terms.CONFIG_MAX,
        lambda path, config: device_terms.configuration(path, config.deviceConfiguration),
    )
    if spec.HasField("extendedResourceName") and not is_extended(spec.extendedResourceName):
        problem = "must be a valid extended resource name"
        errors.append(field.invalid("spec.extendedResourceName", spec.extendedResourceName, problem))
    return errors


RULES = KindRules(
    kind=kinds.DEVICE_CLASS,
    strategy=SimpleStrategy(kinds.DEVICE_CLASS, _validate, counts_generation=True),
    columns=NAME_AND_AGE,
    delete_response=DeleteResponse.OBJECT,
)
