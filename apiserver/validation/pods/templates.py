"""Templates of pods and claims in other objects (kube-apiserver 1.36, ValidatePodTemplateSpec)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nominee.apiserver.validation import field
from nominee.apiserver.validation.objects import metadata
from nominee.apiserver.validation.objects.selectors import label_selector
from nominee.apiserver.validation.pods import annotations as pod_annotations
from nominee.apiserver.validation.pods.options import PodOptions
from nominee.apiserver.validation.pods.spec import pod_spec
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import core, meta
from nominee.machinery.api.selectors import LabelSelector, SelectorError
from nominee.machinery.wire import codec

_DEFAULT_OPTIONS = PodOptions()
_MISMATCH = "`selector` does not match template `labels`"


def pod_template(
    path: str, template: core.PodTemplateSpec, options: PodOptions = _DEFAULT_OPTIONS
) -> Iterator[Cause]:
    """Check a template of pods (ValidatePodTemplateSpec)."""
    annotations = template.metadata.annotations
    yield from labels_of(path, template)
    yield from pod_annotations.of_spec(f"{path}.annotations", annotations, template.spec)
    yield from pod_spec(f"{path}.spec", template.spec, options)
    yield from pod_annotations.against_fields(f"{path}.spec", annotations, template.spec)
    if template.spec.ephemeralContainers:
        problem = "ephemeral containers not allowed in pod template"
        yield field.forbidden(f"{path}.spec.ephemeralContainers", problem)


def labels_of(path: str, template: core.PodTemplateSpec) -> list[Cause]:
    errors = metadata.validate_labels(f"{path}.labels", template.metadata.labels)
    return errors + metadata.validate_annotations(f"{path}.annotations", template.metadata.annotations)


def always_restarts(path: str, template: core.PodTemplateSpec, kind: str) -> Iterator[Cause]:
    """Check that the pods of a workload without an end always restart."""
    policy = template.spec.restartPolicy
    if policy != "Always":
        yield field.not_supported(f"{path}.spec.restartPolicy", policy, ("Always",))
    if template.spec.HasField("activeDeadlineSeconds"):
        problem = f"activeDeadlineSeconds in {kind} is not Supported"
        yield field.forbidden(f"{path}.spec.activeDeadlineSeconds", problem)


def check_selector(
    selector: meta.LabelSelector | None, labels: Mapping[str, str], empty: str, *, required: bool
) -> list[Cause]:
    """Check `spec.selector`: valid, and it selects the template's pods; no selector selects nothing."""
    path = "spec.selector"
    if selector is None:
        errors = [field.required(path)] if required else []
        return [*errors, _mismatch(labels)]
    errors = label_selector(path, selector)
    if not selector.matchLabels and not selector.matchExpressions:
        return [*errors, field.invalid(path, codec.to_json(selector), empty)]
    try:
        if not LabelSelector.from_message(selector).matches(labels):
            errors.append(_mismatch(labels))
    except SelectorError:
        pass
    return errors


def _mismatch(labels: Mapping[str, str]) -> Cause:
    value = dict(sorted(labels.items())) if labels else None
    return field.invalid("spec.template.metadata.labels", value, _MISMATCH)
