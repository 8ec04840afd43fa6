"""`?timeout=`: what is no duration, and a request that is not done in time."""

from __future__ import annotations

import pytest

from nominee.apiserver.fronts.rest.http import deadline
from nominee.apiserver.fronts.rest.http.messages import Request
from nominee.machinery.runtime import failpoints
from tests.apiserver.rest.asgi import in_memory

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
HELD = "apiserver.write.before"


def asked(method: str, text: str) -> float:
    async def never() -> dict[str, str]:
        raise AssertionError("the body is not looked at")

    scope = {"type": "http", "method": method, "path": "/", "query_string": text.encode(), "headers": []}
    return deadline.seconds_of(Request(scope, never))


@pytest.mark.parametrize(
    ("method", "text", "seconds"),
    [
        ("GET", "", 60), ("POST", "", 34), ("GET", "timeout=", 60), ("GET", "timeout=1m30s", 60),
        ("DELETE", "timeout=50s", 34), ("PATCH", "timeout=1.5s", 1.5), ("GET", "timeout=250ms", 0.25),
        # No limit of the client's.
        ("GET", "timeout=0", 60), ("GET", "timeout=0s", 60), ("PUT", "timeout=-1s", 34),
        ("GET", "timeoutSeconds=1", 60),
    ],
)  # fmt: skip
def test_the_server_allows_no_more_than_it_would_without(method: str, text: str, seconds: float) -> None:
    assert asked(method, text) == seconds


@pytest.mark.parametrize("path", ["/api/v1/nodes/x", CONFIG_MAPS, "/version", "/healthz"])
async def test_what_is_no_duration_is_400(path: str) -> None:
    rest = await in_memory()
    reply = await rest.json("GET", path, query={"timeout": "32"})
    assert (reply.code, reply.document["reason"]) == (400, "BadRequest")
    assert reply.document["message"] == (
        'invalid timeout specified in the request URL - time: missing unit in duration "32"'
    )


async def test_a_watch_has_no_deadline() -> None:
    rest = await in_memory()
    reply = await rest.json("GET", CONFIG_MAPS, query={"timeout": "32", "watch": "1"})
    assert "timeout" not in reply.document["message"]


async def test_a_write_that_takes_too_long_is_504() -> None:
    rest = await in_memory()
    document = {"metadata": {"name": "slow"}}
    failpoints.arm(HELD, "pause")
    try:
        reply = await rest.json("POST", CONFIG_MAPS, document, {"timeout": "10ms"})
    finally:
        failpoints.arm(HELD, "off")
    assert (reply.code, reply.document["reason"]) == (504, "Timeout")
    assert reply.document["message"] == (
        "Timeout: request did not complete within requested timeout - context deadline exceeded"
    )
    assert (await rest.json("GET", f"{CONFIG_MAPS}/slow")).code == 404
    assert (await rest.json("POST", CONFIG_MAPS, document, {"timeout": "30s"})).code == 201
