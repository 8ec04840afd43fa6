"""PUT without a resourceVersion, and of what does not exist, and what DELETE answers, by kind."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind
from tests.apiserver.fronts.adapter import Api, Document
from tests.apiserver.fronts.both import Both
from tests.apiserver.fronts.documents import made, refused, replica_set
from tests.apiserver.fronts.test_orphaning_kinds import OBJECTS
from tests.apiserver.rest.test_more_kinds import GOOD

DOCUMENTS: dict[Kind[Any], Document] = {
    **OBJECTS,
    **GOOD,
    kinds.CONFIG_MAP: {"data": {"a": "1"}},
    kinds.DEPLOYMENT: replica_set("x"),
    kinds.ENDPOINTS: {"subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]},
    kinds.LEASE: {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 5}},
    kinds.POD_DISRUPTION_BUDGET: {"spec": {"minAvailable": 1}},
    kinds.PRIORITY_CLASS: {"value": 5},
    kinds.ROLE: {"rules": []},
    kinds.RUNTIME_CLASS: {"handler": "h"},
    kinds.SERVICE: {"spec": {"ports": [{"port": 80}]}},
}
NEEDS_VERSION = {
    "csidrivers",
    "csinodes",
    "csistoragecapacities",
    "leases",
    "poddisruptionbudgets",
    "runtimeclasses",
    "serviceaccounts",
    "volumeattachments",
}
CREATED = {"endpoints", "leases", "limitranges", "roles", "runtimeclasses", "services"}

RETURNED = {
    "csidrivers",
    "csinodes",
    "deviceclasses",
    "resourceclaims",
    "resourceclaimtemplates",
    "resourcequotas",
    "resourceslices",
    "serviceaccounts",
    "services",
    "volumeattachments",
}


def document(kind: Kind[Any], name: str) -> Document:
    return {**DOCUMENTS[kind], "metadata": {"name": name}}


@pytest.mark.parametrize("kind", DOCUMENTS, ids=lambda kind: kind.plural)
def test_updates(api: Api, space: str, kind: Kind[Any]) -> None:
    # Kinds without a namespace are shared by all tests.
    name = f"x-{space}"
    if kind.plural in CREATED:
        made(api.update(kind, document(kind, name), space))
    else:
        refused(api.update(kind, document(kind, name), space), 404, "NotFound")
        made(api.create(kind, document(kind, name), space))
    live = made(api.get(kind, name, space))
    for version in ("", "0"):
        live["metadata"]["resourceVersion"] = version
        outcome = api.update(kind, live, space)
        if kind.plural not in NEEDS_VERSION:
            made(outcome)
            continue
        group = f".{kind.group}" if kind.group else ""
        assert refused(outcome, 422, "Invalid").message == (
            f'{kind.plural}{group} "{name}" is invalid: metadata.resourceVersion: Invalid value: 0: must be'
            " specified for an update"
        )


@pytest.mark.parametrize("kind", DOCUMENTS, ids=lambda kind: kind.plural)
def test_deletes(both: Both, space: str, kind: Kind[Any]) -> None:
    """The object or a Status (ReturnDeletedObject of upstream's stores); gRPC always has the object."""
    name = f"x-{space}"
    created = made(both.rest.create(kind, document(kind, name), space))
    answer = made(both.rest.delete(kind, name, space, body={"propagationPolicy": "Background"}))
    assert answer["kind"] == (kind.kind if kind.plural in RETURNED else "Status")
    uid = answer["metadata"]["uid"] if kind.plural in RETURNED else answer["details"]["uid"]
    assert uid == created["metadata"]["uid"]
