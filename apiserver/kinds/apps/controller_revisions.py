"""ControllerRevisions (kube-apiserver 1.36, ValidateControllerRevisionCreate and -Update)."""

from __future__ import annotations

import json

from nominee.apiserver.kinds.rules import KindRules
from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.printing.cells import NONE
from nominee.apiserver.printing.columns import AGE, NAME, Cells, Column, Columns
from nominee.apiserver.validation import field
from nominee.apiserver.validation.objects import metadata
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import Cause
from nominee.machinery.api.objects import controller_of
from nominee.machinery.api.pb import apps
from nominee.machinery.wire import codec


class ControllerRevisionStrategy(Strategy[apps.ControllerRevision]):
    """The main resource."""

    def validate(self, new: apps.ControllerRevision, env: Environment) -> list[Cause]:
        return self._always(new) + _data(new)

    def _always(self, new: apps.ControllerRevision) -> list[Cause]:
        return self.validate_metadata(new) + field.non_negative("revision", new.revision)

    def validate_update(
        self, new: apps.ControllerRevision, old: apps.ControllerRevision, env: Environment
    ) -> list[Cause]:
        errors = metadata.object_meta_update(new.metadata, old.metadata) + self._always(new)
        if new.data.raw != old.data.raw:
            errors.append(field.invalid("data", codec.to_json(new).get("data"), field.IMMUTABLE))
        return errors


def _data(revision: apps.ControllerRevision) -> list[Cause]:
    """Check that the data, a controller's serialized template, are an object."""
    if not revision.data.raw or revision.data.raw == b"null":
        return [field.required("data", "data is mandatory")]
    try:
        value = json.loads(revision.data.raw)
    except (ValueError, RecursionError) as error:
        return [field.invalid("data", "<value omitted>", f"error parsing data: {error}")]
    if not isinstance(value, dict):
        return [field.required("data", "data must be a valid JSON object")]
    return []


def _row(obj: apps.ControllerRevision, now: float) -> Cells:
    owner = controller_of(obj)
    shown = NONE
    if owner is not None:
        group = owner.apiVersion.rpartition("/")[0]
        kind = owner.kind.lower()
        shown = f"{kind}.{group}/{owner.name}" if group else f"{kind}/{owner.name}"
    return [shown, obj.revision]


RULES = KindRules(
    kind=kinds.CONTROLLER_REVISION,
    strategy=ControllerRevisionStrategy(kinds.CONTROLLER_REVISION),
    columns=Columns(
        _row,
        NAME,
        Column("Controller", "Controller of the object"),
        Column("Revision", "controllerrevision-apps-v1#revision"),
        AGE,
    ),
)
