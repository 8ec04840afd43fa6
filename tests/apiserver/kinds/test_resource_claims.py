"""What a write of a ResourceClaim's status may change."""

from __future__ import annotations

from typing import Any

from nominee.apiserver.kinds.resource.resource_claims import RULES
from nominee.apiserver.kinds.strategy import Environment
from nominee.machinery.api.pb import devices, meta
from nominee.machinery.features.gates import Gates
from nominee.machinery.wire import codec
from tests.apiserver.rest.asgi import VERSION


def _claim(metadata: dict[str, Any], **status: Any) -> devices.ResourceClaim:
    document = {"metadata": {"name": "c", "resourceVersion": "1", **metadata}, "status": status}
    return codec.from_json(devices.ResourceClaim, document)


def test_a_status_is_written_without_the_metadata() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    before = {"labels": {"a": "1"}, "finalizers": ["x.io/f"], "ownerReferences": [owner]}
    old = _claim(before)
    new = _claim({"labels": {"b": "2"}, "annotations": {"c": "3"}}, allocation={})
    environment = Environment(Gates("apiserver", VERSION), meta.Time(seconds=1))
    RULES.strategy.subresources["status"].prepare_for_update(new, old, environment)
    kept, stored = new.metadata, old.metadata
    assert (kept.labels, kept.annotations) == (stored.labels, stored.annotations)
    assert (kept.finalizers, kept.ownerReferences) == (stored.finalizers, stored.ownerReferences)
    assert new.status.HasField("allocation")
