"""Recorded answers that the transport gives: bodies, paths, field validation."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.apiserver.registry.test_api_validation import comparable, expand, without_diff
from tests.apiserver.rest.asgi import Reply, golden, in_memory

FAMILIES = frozenset({"transport", "path", "fieldValidation"})
CASES = [case for case in golden("api_validation") if case["family"] in FAMILIES]
_SCHEME = re.compile(r'in scheme "[^"]*"')
_NOT_SERVED = ("deployments",)


def told(reply: Reply) -> dict[str, Any]:
    status = reply.document
    details = status.get("details") or {}
    return {
        "code": reply.code,
        "reason": status.get("reason", ""),
        "message": without_diff(status.get("message", "")),
        "detailsName": details.get("name", ""),
        "detailsKind": details.get("kind", ""),
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
async def test_a_request_is_answered_as_by_the_real_server(case: dict[str, Any]) -> None:
    rest = await in_memory()
    for document in case.get("setup") or []:
        plural = f"{document['kind'].lower()}s"
        assert (await rest.json("POST", f"/api/v1/namespaces/default/{plural}", document)).code == 201
    request, expect = case["request"], case["expect"]
    if "rawBody" in request:
        body = expand(request["rawBody"]).encode()
    else:
        body = json.dumps(expand(request["body"])).encode() if "body" in request else b""
    headers = {"accept": "application/json", "content-type": request.get("contentType", "application/json")}
    reply = await rest.request(request["method"], request["path"], request.get("query"), body, headers)
    if expect["code"] >= 400:
        wanted = {
            "code": expect["code"],
            "reason": expect.get("reason", ""),
            "message": without_diff(expect.get("message", "")),
            "detailsName": expect.get("detailsName", ""),
            "detailsKind": expect.get("detailsKind", ""),
        }
        assert told(reply) == wanted
        return
    assert reply.code == expect["code"], reply.body
    assert reply.warnings == (expect.get("warnings") or [])
    if "object" in expect:
        assert comparable(reply.document) == comparable(expect["object"])
