"""RuntimeClasses (kube-apiserver 1.36, pkg/apis/node/validation and pkg/registry/node/runtimeclass)."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.simple_strategy import SimpleStrategy, UpdateCheck
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field, names, scheduling_terms
from nominee.apiserver.validation.objects import metadata
from nominee.apiserver.validation.values import quantities
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.pb import node


def _validate(obj: node.RuntimeClass) -> Iterator[Cause]:
    yield from field.check("handler", obj.handler, names.dns_label)
    if obj.HasField("overhead"):
        yield from quantities.requirements("overhead", {}, obj.overhead.podFixed)
    if obj.HasField("scheduling"):
        yield from metadata.validate_labels("scheduling.nodeSelector", obj.scheduling.nodeSelector)
        yield from scheduling_terms.tolerations("scheduling.tolerations", obj.scheduling.tolerations)


def _validate_update(new: node.RuntimeClass, old: node.RuntimeClass) -> Iterator[Cause]:
    """The whole of an update, as upstream orders it."""
    yield from _validate(new)
    if new.handler != old.handler:
        yield field.invalid("handler", new.handler, field.IMMUTABLE)


def _row(obj: node.RuntimeClass, now: float) -> Cells:
    return [obj.handler]


RULES = KindRules(
    kind=kinds.RUNTIME_CLASS,
    strategy=SimpleStrategy(kinds.RUNTIME_CLASS, _validate, _validate_update, updates=UpdateCheck.NOTHING),
    columns=Columns(_row, NAME, Column("Handler", "runtimeclass-node-v1#handler"), AGE),
    created_by_update=True,
    needs_resource_version=True,
)
