"""Every recorded answer to odd and invalid input, over the REST front: one test a case."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest

from nominee.machinery.api import kinds
from tests.apiserver.rest.asgi import Reply, Rest, in_memory
from tests.apiserver.rest.recorded import apply_change, comparable, drop, expand, masked
from tests.support.recordings import read

GENERATED_LETTERS = 5
CASES = read("api_validation.jsonl")


def _collection(document: dict[str, Any]) -> str:
    kind = kinds.by_kind(document["apiVersion"], document["kind"])
    assert kind is not None, document["kind"]
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    namespace = document["metadata"].get("namespace", "default")
    return f"{base}/namespaces/{namespace}/{kind.plural}" if kind.namespaced else f"{base}/{kind.plural}"


async def _set_up(rest: Rest, case: dict[str, Any]) -> None:
    for document in case.get("setup") or []:
        path = _collection(document)
        made = await rest.json("POST", path, expand(document))
        assert made.code == 201, made.body
        if case.get("setupStatus"):
            changed = {**made.document, "status": case["setupStatus"]}
            done = await rest.json("PUT", f"{path}/{document['metadata']['name']}/status", changed)
            assert done.code == 200, done.body


async def play(rest: Rest, case: dict[str, Any]) -> Reply:
    """The answer to the case's request."""
    await _set_up(rest, case)
    request = case["request"]
    if "set" in request:
        live = await rest.json("GET", request["path"].removesuffix("/status"))
        document = live.document
        for path, value in request["set"]:
            apply_change(document, path, expand(value))
        body = json.dumps(document).encode()
    elif "rawBody" in request:
        body = expand(request["rawBody"]).encode()
    else:
        body = json.dumps(expand(request["body"])).encode() if "body" in request else b""
    headers = {"accept": "application/json", "content-type": request.get("contentType") or "application/json"}
    return await rest.request(request["method"], request["path"], request.get("query"), body, headers)


def _refusal(document: dict[str, Any]) -> dict[str, Any]:
    """A Status in the golden file's words."""
    details = document.get("details") or {}
    return {
        "reason": document.get("reason", ""),
        "message": document.get("message", ""),
        "causes": details.get("causes") or [],
        **{f"details{name.title()}": details.get(name, "") for name in ("name", "kind", "group")},
    }


def _status_fields(expect: dict[str, Any]) -> dict[str, Any]:
    causes = expect.get("causes") or []
    fields = {name: expect.get(name, "") for name in ("reason", "detailsName", "detailsKind", "detailsGroup")}
    fields["causes"] = sorted((c.get("field", ""), c.get("reason", ""), c.get("message", "")) for c in causes)
    message = masked(expect.get("message", ""))
    # The order of several causes in the text may be that of a Go map.
    fields["message"] = sorted(re.split(r", |\n|[\[\]]", message)) if len(causes) > 1 else message
    return fields


def verdicts(case: dict[str, Any], reply: Reply) -> tuple[Any, Any]:
    """(got, wanted) as comparable data."""
    expect = copy.deepcopy(case["expect"])
    unstable = [
        p.removeprefix("/expect") for p in case.get("unstable") or [] if str(p).startswith("/expect/")
    ]
    got: dict[str, Any] = {"code": reply.code}
    if "text" in expect:
        return got | {"text": reply.body.decode()}, expect
    if expect["code"] >= 400:
        got |= _refusal(reply.document)
        drop(got, unstable)
        drop(expect, unstable)
        return {"code": reply.code, **_status_fields(got)}, {"code": expect["code"], **_status_fields(expect)}
    got["warnings"] = reply.warnings
    wanted = {"code": expect["code"], "warnings": expect.get("warnings") or []}
    if "generatedName" in expect and reply.code < 300:
        name = reply.document["metadata"]["name"]
        got["generatedName"] = {"prefixLength": len(name) - GENERATED_LETTERS, "length": len(name)}
        wanted["generatedName"] = expect["generatedName"]
    if "object" in expect and reply.code < 300:
        got["object"] = reply.document
        drop(got, unstable)
        drop(expect, unstable)
        got["object"], wanted["object"] = comparable(got["object"]), comparable(expect["object"])
    return got, wanted


def _differences(got: Any, wanted: Any, path: str = "") -> list[str]:
    if isinstance(got, dict) and isinstance(wanted, dict):
        found = []
        for key in sorted({*got, *wanted}):
            found += _differences(got.get(key), wanted.get(key), f"{path}.{key}" if path else key)
        return found
    return [] if got == wanted else [f"{path}: got {got!r}, want {wanted!r}"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
async def test_requests_are_answered_as_by_the_real_server(case: dict[str, Any]) -> None:
    assert not _differences(*verdicts(case, await play(await in_memory(), case)))
