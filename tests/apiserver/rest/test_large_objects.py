"""Objects larger than etcd takes: 413 before seconds go into them, and without stalling other clients."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

import anyio
import anyio.to_thread
import pytest

from nominee.apiserver.managed_fields import manager
from nominee.machinery.api import kinds
from nominee.machinery.runtime.clock import SystemClock
from tests.apiserver.rest.asgi import Rest, in_memory
from tests.support.cluster import Cluster
from tests.support.patience import PATIENCE_SECONDS

PODS = "/api/v1/namespaces/default/pods"
TOO_LARGE = (413, "RequestEntityTooLarge")
STALL_SECONDS_MAX = 2.0
"""Such a write took 4 s, in which no other request was served."""


def pod(name: str, variables: int) -> dict[str, Any]:
    """A pod with many small fields: those cost the most."""
    env = [{"name": f"V{number}", "value": "x" * 40} for number in range(variables)]
    container = {"name": "c", "image": "i", "env": env}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [container]},
    }  # fmt: skip


def compact(document: object) -> bytes:
    """A body below the fronts' own limit of 3 MiB."""
    return json.dumps(document, separators=(",", ":")).encode()


@pytest.fixture
async def rest(monkeypatch: pytest.MonkeyPatch) -> Rest:
    made = await in_memory()
    assert (await made.json("POST", PODS, pod("small", 1))).code == 201

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a large object was tracked")

    for name in ("track_create", "track_update", "apply"):
        monkeypatch.setattr(manager, name, never)
    return made


@pytest.mark.parametrize(
    ("method", "name", "content"),
    [
        ("POST", "", "application/json"),
        ("PUT", "/small", "application/json"),
        ("PATCH", "/small", "application/merge-patch+json"),
        ("PATCH", "/small", "application/strategic-merge-patch+json"),
        ("PATCH", "/small", "application/apply-patch+yaml"),
    ],
)
async def test_413_before_its_fields_are_tracked(rest: Rest, method: str, name: str, content: str) -> None:
    # YAML is slow to read: few large fields there.
    large = pod("small" if name else "large", 1 if "yaml" in content else 40_000)
    if "yaml" in content:
        large["spec"]["containers"][0]["args"] = ["x" * 1000] * 1600
    query = {"fieldManager": "test"} if "yaml" in content else {}
    headers = {"accept": "application/json", "content-type": content}
    answer = await rest.request(method, PODS + name, query, compact(large), headers)
    assert (answer.code, answer.document["reason"]) == TOO_LARGE
    assert "limit is 1572864" in answer.document["message"]


@pytest.mark.parametrize("resource", ["configmaps", "secrets"])
async def test_config_maps_and_secrets_have_a_limit_of_their_own(resource: str) -> None:
    rest = await in_memory()
    data = "QUFB" * 500_000 if resource == "secrets" else "x" * 2_000_000
    body = {"metadata": {"name": "large"}, "data": {"a": data}}
    answer = await rest.json("POST", f"/api/v1/namespaces/default/{resource}", body)
    assert answer.code == 422
    assert "Too long: may not be more than 1048576 bytes" in answer.document["message"]


@pytest.mark.chaos
async def test_other_clients_are_served_meanwhile(cluster: Cluster) -> None:
    """Large writes one after the other; another client's small ones do not wait for them."""
    pki = cluster.secure("--disable-admission-plugins", "ServiceAccount")
    await cluster.start("etcd", "apiserver")
    token = (pki.clients / "admin.token").read_text(encoding="ascii")
    address = f"https://{cluster.run_file('apiserver').document['rest']}{PODS}"
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    body = compact(pod("large", 40_000))

    def write() -> int:
        request = urllib.request.Request(address, body, headers)
        try:
            trust = ssl.create_default_context(cafile=str(pki.ca))
            with urllib.request.urlopen(request, context=trust, timeout=PATIENCE_SECONDS) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    clock, waits = SystemClock(), list[float]()
    async with cluster.client() as client, anyio.create_task_group() as group:

        async def small_writes() -> None:
            while True:
                begun = clock.monotonic()
                patch = {"metadata": {"annotations": {"at": str(begun)}}}
                await client.patch(kinds.NAMESPACE, "default", "", patch)
                waits.append(clock.monotonic() - begun)

        group.start_soon(small_writes)
        for _ in range(3):
            assert await anyio.to_thread.run_sync(write) == 413
        group.cancel_scope.cancel()
    assert len(waits) > 10
    assert max(waits) < STALL_SECONDS_MAX
