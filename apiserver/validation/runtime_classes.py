"""RuntimeClasses (kube-apiserver 1.36, pkg/apis/node/validation)."""

from __future__ import annotations

from apiserver.validation import field, metadata, names, quantities, scheduling_terms
from machinery.api.errors import Cause
from machinery.api.pb import node


def runtime_class(obj: node.RuntimeClass) -> list[Cause]:
    errors = [field.invalid("handler", obj.handler, problem) for problem in names.dns_label(obj.handler)]
    if obj.HasField("overhead"):
        errors += quantities.requirements("overhead", {}, obj.overhead.podFixed)
    if obj.HasField("scheduling"):
        errors += metadata.validate_labels("scheduling.nodeSelector", obj.scheduling.nodeSelector)
        errors += scheduling_terms.tolerations("scheduling.tolerations", obj.scheduling.tolerations)
    return errors


def change(new: node.RuntimeClass, old: node.RuntimeClass) -> list[Cause]:
    """The whole of an update, as upstream orders it."""
    errors = runtime_class(new)
    if new.handler != old.handler:
        errors.append(field.invalid("handler", new.handler, field.IMMUTABLE))
    return errors
