"""Warnings about a new object that a real cluster would act on, and this one does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from google.protobuf.message import Message

from nominee.machinery.api import actors
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import controller_of
from nominee.machinery.api.pb import batch, core

_RUN_DURATION: Final = "run-duration"


def of_creation(kind: AnyKind, obj: Message) -> Iterator[str]:
    """Yield the warnings for the client that creates an object."""
    if text := actors.warning(kind):
        yield text
    template = _template(obj)
    if template is not None and not _ends(template):
        annotation = f"set the annotation nominee.dev/{_RUN_DURATION} of its pod template"
        yield f"nominee: no pod of this {kind.kind} ends by itself: {annotation} (docs/configuration.md)"


def _template(obj: Message) -> core.PodTemplateSpec | None:
    """Return the template of pods that are meant to end; that of a CronJob's Job was judged before."""
    if isinstance(obj, batch.CronJob):
        return obj.spec.jobTemplate.spec.template
    if isinstance(obj, batch.Job) and controller_of(obj) is None:
        return obj.spec.template
    return None


def _ends(template: core.PodTemplateSpec) -> bool:
    annotations = template.metadata.annotations
    return f"nominee.dev/{_RUN_DURATION}" in annotations or _RUN_DURATION in annotations.get(
        "nominee.dev/rules", ""
    )
