"""An object with a field of a newer version: an older server does not show it, and its writes drop it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Version
from nominee.machinery.wire import envelope
from tests.apiserver.registry.memory_storage import MemoryStorage
from tests.apiserver.registry.test_resize_preemption_policy import create, policy, server
from tests.apiserver.rest.asgi import Reply, Rest

OLDER = Version(1, 36)
NODE = "/api/v1/nodes/n"


@dataclass
class Servers:
    """Servers of two versions on one storage, which has a node with a policy."""

    storage: MemoryStorage
    newer: Rest
    older: Rest

    def stored(self) -> core.Node:
        return envelope.decode(kinds.NODE, self.storage.values[kinds.NODE.key("", "n")].data)

    def is_stored(self) -> bool:
        return self.stored().spec.HasField("podPreemptionPolicy")


@pytest.fixture
async def servers() -> Servers:
    storage = MemoryStorage()
    found = Servers(storage, server(storage), server(storage, gate=False, version=OLDER))
    assert (await create(found.newer, "example.com/a")).code == 201
    assert found.is_stored()
    return found


async def patch(
    rest: Rest, body: Any, path: str = NODE, form: str = "merge-patch+json", **query: str
) -> Reply:
    return await rest.json("PATCH", path, body, query, content=f"application/{form}")


async def test_reading_does_not_change_it(servers: Servers) -> None:
    shown = await servers.older.json("GET", NODE)
    assert shown.document["spec"] == {}
    sent = await servers.older.request("GET", NODE, headers={"accept": "application/vnd.kubernetes.protobuf"})
    assert not envelope.decode(kinds.NODE, sent.body).spec.HasField("podPreemptionPolicy")
    assert (await servers.newer.json("GET", NODE)).document["spec"] == policy("example.com/a")


@pytest.mark.parametrize(
    ("body", "subresource", "form"),
    [
        ({"metadata": {"labels": {"a": "b"}}}, "", "merge-patch+json"),
        ({"spec": {"unschedulable": True}}, "", "strategic-merge-patch+json"),
        ({"apiVersion": "v1", "kind": "Node", "metadata": {"labels": {"a": "b"}}}, "", "apply-patch+yaml"),
        ({"status": {"phase": "Running"}}, "/status", "merge-patch+json"),
        # The write changes nothing that this server knows: the bytes in etcd are others.
        ({}, "", "merge-patch+json"),
    ],
)  # fmt: skip
async def test_a_patch_drops_it(servers: Servers, body: Any, subresource: str, form: str) -> None:
    before = servers.stored().metadata
    changed = await patch(servers.older, body, NODE + subresource, form, fieldManager="m")
    assert changed.code == 200, changed.body
    assert "podPreemptionPolicy" not in changed.document["spec"]
    assert not servers.is_stored()
    assert servers.stored().metadata.uid == before.uid
    assert "podPreemptionPolicy" not in (await servers.newer.json("GET", NODE)).document["spec"]


async def test_an_update_drops_it(servers: Servers) -> None:
    live = (await servers.older.json("GET", NODE)).document
    changed = await servers.older.json("PUT", NODE, live)
    assert changed.code == 200, changed.body
    assert not servers.is_stored()
    # From here on the stored bytes are the server's own.
    revision = servers.storage.revision
    assert (await servers.older.json("PUT", NODE, changed.document)).code == 200
    assert servers.storage.revision == revision


async def test_a_dry_run_does_not_drop_it(servers: Servers) -> None:
    tried = await patch(servers.older, {"metadata": {"labels": {"a": "b"}}}, dryRun="All")
    assert tried.document["spec"] == {}
    assert servers.is_stored()


async def test_a_patch_of_another_field_has_no_unknown_field(servers: Servers) -> None:
    """Field validation concerns what the client sends."""
    changed = await patch(servers.older, {"spec": {"unschedulable": True}}, fieldValidation="Strict")
    assert (changed.code, changed.warnings) == (200, []), changed.body


async def test_its_owner_stays_until_it_applies_again(servers: Servers) -> None:
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": policy("example.com/b")}
    assert (await patch(servers.newer, body, form="apply-patch+yaml", fieldManager="owner")).code == 200

    def owned() -> bool:
        rows = servers.stored().metadata.managedFields
        return any(row.manager == "owner" and b"podPreemptionPolicy" in row.fieldsV1.Raw for row in rows)

    assert (
        await patch(servers.older, {"metadata": {"labels": {"a": "b"}}}, fieldManager="other")
    ).code == 200
    assert not servers.is_stored()
    assert owned()
    body["spec"] = {}
    assert (await patch(servers.older, body, form="apply-patch+yaml", fieldManager="owner")).code == 200
    assert not owned()


async def test_a_deletion_shows_the_object_without_it(servers: Servers) -> None:
    assert (await patch(servers.newer, {"metadata": {"finalizers": ["example.com/f"]}})).code == 200
    gone = await servers.older.json("DELETE", NODE)
    assert gone.code == 200, gone.body
    assert gone.document["metadata"]["deletionTimestamp"]
    assert gone.document["spec"] == {}
