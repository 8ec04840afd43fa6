"""ReplicationControllers (kube-apiserver 1.36, pkg/apis/core/validation)."""

from __future__ import annotations

from apiserver.validation import field, templates
from apiserver.validation.pod_options import PodOptions
from machinery.api.errors import Cause
from machinery.api.pb import core

_COUNTS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")


def replication_controller(obj: core.ReplicationController, options: PodOptions) -> list[Cause]:
    spec = obj.spec
    errors = field.non_negative("spec.minReadySeconds", spec.minReadySeconds)
    if not spec.selector:
        errors.append(field.required("spec.selector"))
    errors += field.non_negative("spec.replicas", spec.replicas)
    path = "spec.template"
    if not spec.HasField("template"):
        return [*errors, field.required(path)]
    labels = spec.template.metadata.labels
    if any(labels.get(key) != value for key, value in spec.selector.items()):
        problem = "`selector` does not match template `labels`"
        value = dict(sorted(labels.items())) if labels else None
        errors.append(field.invalid(f"{path}.metadata.labels", value, problem))
    errors += templates.pod_template(path, spec.template, options)
    return errors + templates.always_restarts(path, spec.template, "ReplicationController")


def status(new: core.ReplicationController, old: core.ReplicationController) -> list[Cause]:
    found = new.status
    errors: list[Cause] = []
    for name in _COUNTS:
        errors += field.non_negative(f"status.{name}", getattr(found, name))
    for name in _COUNTS[1:4]:
        if getattr(found, name) > found.replicas:
            problem = "cannot be greater than status.replicas"
            errors.append(field.invalid(f"status.{name}", getattr(found, name), problem))
    if found.availableReplicas > found.readyReplicas:
        problem = "cannot be greater than readyReplicas"
        errors.append(field.invalid("status.availableReplicas", found.availableReplicas, problem))
    return errors
