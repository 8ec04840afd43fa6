"""ControllerRevisions (kube-apiserver 1.36, ValidateControllerRevisionCreate and -Update)."""

from __future__ import annotations

import json
from typing import Any

from apiserver.registry.strategy import Environment, Strategy
from apiserver.validation import field, metadata
from machinery.api import kinds
from machinery.api.errors import Cause
from machinery.api.pb import apps
from machinery.wire import codec


class ControllerRevisionStrategy(Strategy):
    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self._always(new) + _data(new)

    def _always(self, new: apps.ControllerRevision) -> list[Cause]:
        return self.validate_metadata(new) + field.non_negative("revision", new.revision)

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        errors = metadata.object_meta_update(new.metadata, old.metadata) + self._always(new)
        if new.data.raw != old.data.raw:
            errors.append(field.invalid("data", codec.to_json(new).get("data"), field.IMMUTABLE))
        return errors


def _data(revision: apps.ControllerRevision) -> list[Cause]:
    """What the controller made of its template, which is an object."""
    if not revision.data.raw or revision.data.raw == b"null":
        return [field.required("data", "data is mandatory")]
    try:
        value = json.loads(revision.data.raw)
    except (ValueError, RecursionError) as error:
        return [field.invalid("data", "<value omitted>", f"error parsing data: {error}")]
    if not isinstance(value, dict):
        return [field.required("data", "data must be a valid JSON object")]
    return []


STRATEGY = ControllerRevisionStrategy(kinds.CONTROLLER_REVISION)
