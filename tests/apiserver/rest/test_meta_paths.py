"""Paths that are about no object, methods and names of paths, over a real port.

Expectations are from recorded answers of 1.36.2 (tests/golden/exchanges) and from kube-apiserver's handlers:
what go-restful serves knows methods and answers with a Status, the rest does neither.
"""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    EllipticCurvePublicNumbers,
)
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from nominee.apiserver.access.service_accounts import Claims, ServiceAccountTokens
from nominee.apiserver.fronts.rest.front import FrontOptions
from nominee.localcluster.credentials.pki import Pki
from nominee.machinery.process.serving_port.health import Health
from nominee.machinery.runtime.clock import FakeClock
from tests.apiserver.cache.test_watch_cache import LIMIT_SECONDS
from tests.apiserver.rest.asgi import VERSION, Rest, in_memory, rest_front
from tests.apiserver.rest.test_wire import serving
from tests.support.etcd import ThrowawayEtcd

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
NOT_SERVED = "the server could not find the requested resource"
NOT_ALLOWED = "the server does not allow this method on the requested resource"


class Answer:
    def __init__(self, address: str, method: str, path: str) -> None:
        client = http.client.HTTPConnection(address, timeout=LIMIT_SECONDS)
        try:
            # As it is: http.client encodes nothing of a path.
            client.putrequest(method, path)
            client.endheaders()
            answer = client.getresponse()
            self.code, self.headers, self.body = answer.status, answer.headers, answer.read()
        finally:
            client.close()

    @property
    def form(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class Asked:
    """A client of a server at `address`."""

    def __init__(self, rest: Rest, address: str) -> None:
        self.rest, self._address = rest, address

    async def __call__(self, method: str, path: str) -> Answer:
        return await anyio.to_thread.run_sync(partial(Answer, self._address, method, path))


@asynccontextmanager
async def asking(etcd: ThrowawayEtcd) -> AsyncIterator[Asked]:
    async with serving(etcd) as (rest, address):
        yield Asked(rest, address)


async def test_what_is_not_there(etcd: ThrowawayEtcd) -> None:
    """404: a Status below what the router claims, plain text elsewhere, as below an unknown group."""
    async with asking(etcd) as ask:
        for path in (
            "/apis/nope",
            "/apis/nope/v1",
            "/apis/nope/v1/foos",
            "/apis/nope/v1/namespaces/default/foos/x",
            "/apis/nope/v1/foos?watch=1",
            "/foo",
            "/logs",
            "/healthz/nope",
            "/.well-known/openid-configuration",
        ):
            answer = await ask("GET", path)
            assert (answer.code, answer.body) == (404, b"404 page not found\n"), path
            assert answer.form == "text/plain; charset=utf-8"
            assert answer.headers["x-content-type-options"] == "nosniff"
        for path in (
            "/api/v2",
            "/api/v2/pods",
            "/api/v1/foos",
            "/apis/apps/v9",
            "/apis/apps/v9/deployments",
            "/apis/apps/v1/foos",
            "/api/v1/namespaces/default/nodes",
            "/api/v1/namespaces/default/pods/p/foo",
            "/api/v1/namespaces/default/pods/a/b/c/d",
            "/version/foo",
        ):
            answer = await ask("GET", path)
            assert (answer.code, answer.form) == (404, "application/json"), path
            assert (answer.document["reason"], answer.document["message"]) == ("NotFound", NOT_SERVED)


async def test_head_and_other_methods(etcd: ThrowawayEtcd) -> None:
    async with asking(etcd) as ask:
        await ask.rest.json("POST", CONFIG_MAPS, {"metadata": {"name": "x"}})
        for path in (CONFIG_MAPS, f"{CONFIG_MAPS}/x", "/version", "/api", "/api/v1", "/apis/apps/v1"):
            answer = await ask("HEAD", path)
            assert (answer.code, answer.form, answer.body) == (405, "application/json", b""), path
            assert (await ask("OPTIONS", path)).document["message"] == NOT_ALLOWED
        for path in ("/", "/healthz", "/livez/ping", "/metrics", "/openapi/v2", "/apis", "/apis/apps"):
            got, head = await ask("GET", path), await ask("HEAD", path)
            assert (got.code, head.code, head.body) == (200, 200, b""), path
            assert head.form == got.form
            assert (await ask("POST", path)).code == 200, path


async def test_the_list_of_paths(etcd: ThrowawayEtcd) -> None:
    async with asking(etcd) as ask:
        answer = await ask("GET", "/")
        assert answer.form == "application/json"
        listed = answer.document["paths"]
        assert listed == sorted(set(listed))
        assert (await ask("GET", "/index.html")).document["paths"] == listed
        assert {"/apis/", "/livez/ping", "/metrics/slis", "/openapi/v3/", "/readyz", "/version"} <= set(
            listed
        )
        for path in listed:
            assert (await ask("GET", path)).code == 200, path


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (f"{CONFIG_MAPS}/a%2Eb", "a.b"),
        (f"{CONFIG_MAPS}/a.b/", "a.b"),
        ("/api/v1/namespaces/d%65fault/configmaps/%61.b", "a.b"),
        (f"{ROLES}/system%3Aa%20b", "system:a b"),
        (f"{ROLES}/system:a%20b", "system:a b"),
        (f"{ROLES}/%C3%A4+b", "ä+b"),
    ],
)
async def test_encoded_names(etcd: ThrowawayEtcd, path: str, name: str) -> None:
    async with asking(etcd) as ask:
        where = ROLES if path.startswith(ROLES) else CONFIG_MAPS
        assert (await ask.rest.json("POST", where, {"metadata": {"name": name}})).code == 201
        answer = await ask("GET", path)
        assert (answer.code, answer.document["metadata"]["name"]) == (200, name)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (f"{CONFIG_MAPS}/a%25b", "Name parameter invalid: \"a%b\": may not contain '%'"),
        (f"{CONFIG_MAPS}/%2E%2E", "Name parameter invalid: \"..\": may not be '..'"),
        (f"{CONFIG_MAPS}/.", "Name parameter invalid: \".\": may not be '.'"),
        ("/api/v1/nodes/a%25b", "Name parameter invalid: \"a%b\": may not contain '%'"),
    ],
)
async def test_names_that_no_object_has(etcd: ThrowawayEtcd, path: str, message: str) -> None:
    async with asking(etcd) as ask:
        for method in ("GET", "DELETE"):
            answer = await ask(method, path)
            assert (answer.code, answer.document["message"]) == (400, message)


async def test_a_slash_in_a_name_is_a_slash(etcd: ThrowawayEtcd) -> None:
    async with asking(etcd) as ask:
        answer = await ask("GET", f"{CONFIG_MAPS}/a%2Fb")
        assert (answer.code, answer.document["message"]) == (404, NOT_SERVED)


@pytest.mark.parametrize("path", [f"{CONFIG_MAPS}/a%zz", "/version%", f"{CONFIG_MAPS}/a%2"])
async def test_invalid_percent_escapes(etcd: ThrowawayEtcd, path: str) -> None:
    async with asking(etcd) as ask:
        answer = await ask("GET", path)
        assert (answer.code, answer.body) == (400, b"400 Bad Request")
        assert answer.headers["connection"] == "close"


async def test_health(etcd: ThrowawayEtcd) -> None:
    async with asking(etcd) as ask:
        plain = await ask("GET", "/livez")
        assert (plain.code, plain.body, plain.form) == (200, b"ok", "text/plain; charset=utf-8")
        assert plain.headers["cache-control"] == "no-cache, private"
        assert (await ask("GET", "/readyz?verbose")).body == b"[+]ping ok\nreadyz check passed\n"
        excluded = await ask("GET", "/readyz?verbose&exclude=ping&exclude=nope")
        assert excluded.body.startswith(b"[+]ping excluded: ok\nwarn: some health checks cannot be excluded")
        slis = await ask("GET", "/metrics/slis")
        assert b'kubernetes_healthchecks_total{name="ping",status="success",type="livez"} 1.0' in slis.body


def of_base64(text: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(text + "=="), "big")


async def test_tokens_are_verified_by_the_published_key(tmp_path: Path) -> None:
    pki, clock = Pki(tmp_path), FakeClock()
    pki.ensure({}, {}, now=datetime.fromtimestamp(clock.now(), UTC))
    accounts = ServiceAccountTokens(pki.accounts_key.read_bytes(), Nothing(), clock)
    plain = await in_memory()
    options = FrontOptions(VERSION, "10.0.0.1:6443", Health(), accounts=accounts)
    rest = Rest(rest_front(plain.registry, clock, options))
    found = await rest.request("GET", "/.well-known/openid-configuration")
    assert (found.header("content-type"), found.header("cache-control")) == (
        "application/json",
        "public, max-age=3600",
    )
    assert found.document == {
        "issuer": "https://kubernetes.default.svc.cluster.local",
        "jwks_uri": "https://10.0.0.1:6443/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
    keys = await rest.request("GET", "/openid/v1/jwks")
    assert keys.header("content-type") == "application/jwk-set+json"
    (key,) = keys.document["keys"]
    token = accounts.issue(Claims("default", "a", "u", ("x",), 1.0, 2.0, "t"))
    head, payload, signature = token.split(".")
    assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": key["alg"], "kid": key["kid"]}
    public = EllipticCurvePublicNumbers(of_base64(key["x"]), of_base64(key["y"]), SECP256R1()).public_key()
    raw = base64.urlsafe_b64decode(signature + "==")
    der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    public.verify(der, f"{head}.{payload}".encode(), ECDSA(SHA256()))
    assert (await rest.request("HEAD", "/openid/v1/jwks")).code == 405
    listed = (await rest.request("GET", "/")).document["paths"]
    assert {"/.well-known/openid-configuration", "/openid/v1/jwks"} <= set(listed)


class Nothing:
    """A cluster without objects."""

    def get(self, kind: Any, namespace: str, name: str) -> None:
        return None
