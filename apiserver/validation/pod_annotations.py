"""Annotations of pods that mean something (kube-apiserver 1.36, ValidatePodSpecificAnnotations).

Of those that only old versions read, AppArmor's may not change; their values are not checked.
"""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.validation import field
from machinery.errors import Cause
from machinery.pb import core

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_INT32_MIN, _INT32_MAX = -(1 << 31), (1 << 31) - 1


def pod_annotations(new: core.Pod, old: core.Pod | None) -> list[Cause]:
    """What holds whenever a pod is written; a bad cost that was there before may stay."""
    errors: list[Cause] = []
    annotations = new.metadata.annotations
    if MIRROR_ANNOTATION in annotations and not new.spec.nodeName:
        problem = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(field.invalid(_at(MIRROR_ANNOTATION), annotations[MIRROR_ANNOTATION], problem))
    if not _valid_cost(annotations) and (old is None or _valid_cost(old.metadata.annotations)):
        problem = "must be a 32bit integer"
        errors.append(field.invalid(_at(DELETION_COST), annotations[DELETION_COST], problem))
    return errors


def update(new: core.Pod, old: core.Pod) -> list[Cause]:
    """A mirror pod is one from its creation to its end."""
    before, after = old.metadata.annotations, new.metadata.annotations
    errors: list[Cause] = []
    if before != after:
        for key in sorted(before):
            what = _fixed(key)
            if what and (key not in after or after[key] != before[key]):
                errors.append(field.forbidden(_at(key), f"may not remove or update {what}"))
        for key in sorted(after):
            what = _fixed(key)
            if what and key not in before:
                errors.append(field.forbidden(_at(key), f"may not add {what}"))
    return errors + pod_annotations(new, old)


def _fixed(key: str) -> str:
    """What an annotation that may not change is called."""
    if key == MIRROR_ANNOTATION:
        return "mirror pod annotation"
    return "AppArmor annotations" if key.startswith(_APP_ARMOR) else ""


def _valid_cost(annotations: Mapping[str, str]) -> bool:
    """None, or a number without plus sign and leading zeros."""
    if DELETION_COST not in annotations:
        return True
    text = annotations[DELETION_COST]
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or (text != "0" and text[0] == "0"):
        return False
    return _INT32_MIN <= int(text) <= _INT32_MAX


def _at(key: str) -> str:
    return f"metadata.annotations[{key}]"
