"""Recorded patches: JSON, merge and strategic, with their errors and warnings."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest

from machinery import kinds
from tests.apiserver.registry.test_api_validation import comparable, expand, without_diff
from tests.apiserver.rest.asgi import Reply, Rest, golden, in_memory

FAMILIES = frozenset({"json", "merge", "strategic", "update"})
SERVED = {kind.kind for kind in kinds.KINDS}
CASES = [case for case in golden("api_patch") if case["family"] in FAMILIES and case["kind"] in SERVED]
GAPS = {"strategic-deploy-spread-add": "no warnings about pod templates yet"}
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MEDIA = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


def _masked(text: str) -> str:
    return _UID.sub("<uid>", text).replace("ResourceVersion: 0", "ResourceVersion: <rv>")


def substitute(value: Any, version: str) -> Any:
    if isinstance(value, str):
        return version if value == "$RV" else value
    if isinstance(value, dict):
        return {key: substitute(inner, version) for key, inner in value.items()}
    return [substitute(inner, version) for inner in value] if isinstance(value, list) else value


def set_path(document: Any, path: list[str] | str, value: Any) -> None:
    *parents, last = path.split(".") if isinstance(path, str) else path
    for part in parents:
        document = document[int(part)] if isinstance(document, list) else document.setdefault(part, {})
    if value is None and isinstance(document, dict):
        document.pop(last, None)
    elif isinstance(document, list):
        document[int(last) : int(last) + 1] = [value]
    else:
        document[last] = value


async def step(rest: Rest, case: dict[str, Any], what: dict[str, Any]) -> Reply:
    path = case["path"] + (f"/{what['subresource']}" if what.get("subresource") else "")
    query = {
        name: str(what[name]).lower() if name == "force" else what[name]
        for name in ("fieldManager", "force", "dryRun", "fieldValidation")
        if what.get(name)
    }
    query = expand(query)
    kind = what["type"]
    live = await rest.json("GET", case["path"])
    version = live.document["metadata"].get("resourceVersion", "") if live.code == 200 else ""
    if kind in ("get", "delete"):
        return await rest.json(kind.upper(), path, None, query)
    if kind == "update":
        document = copy.deepcopy(live.document)
        for where, value in what["set"]:
            set_path(document, where, substitute(expand(value), version))
        return await rest.json("PUT", path, document, query)
    if kind == "patch-missing":
        path, kind = path.rpartition("/")[0] + "/nope", what["as"]
    body = what["raw"].encode() if "raw" in what else json.dumps(
        substitute(expand(what["body"]), version)
    ).encode()  # fmt: skip
    headers = {"accept": "application/json", "content-type": what.get("contentType") or MEDIA[kind]}
    return await rest.request("PATCH", path, query, body, headers)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
async def test_patches_are_answered_as_by_the_real_server(case: dict[str, Any]) -> None:
    if any(each["type"] == "apply" for each in case["steps"]):
        pytest.skip("server-side apply is not there yet")
    if case["name"] in GAPS:
        pytest.xfail(GAPS[case["name"]])
    rest = await in_memory()
    if case.get("object"):
        made = await rest.json("POST", case["path"].rpartition("/")[0], expand(case["object"]))
        assert made.code == 201, made.body
    if case.get("status"):
        live = (await rest.json("GET", case["path"])).document
        done = await rest.json("PUT", f"{case['path']}/status", {**live, "status": case["status"]})
        assert done.code == 200, done.body
    for number, what in enumerate(case["steps"]):
        expect = what["expect"]
        reply = await step(rest, case, what)
        got: dict[str, Any] = {"step": number, "code": reply.code}
        wanted: dict[str, Any] = {"step": number, "code": expect["code"]}
        if expect["code"] >= 400:
            status = reply.document
            got["reason"], wanted["reason"] = status.get("reason", ""), expect.get("reason", "")
            got["causes"] = sorted({c.get("field", "") for c in status.get("details", {}).get("causes", [])})
            wanted["causes"] = sorted({c.get("field", "") for c in expect.get("causes") or []})
            if len(expect.get("causes") or []) < 2 and "patch: Invalid value" not in expect["message"]:
                got["message"] = _masked(without_diff(status.get("message", "")))
                wanted["message"] = without_diff(expect["message"])
        elif "object" in expect:
            got["object"], wanted["object"] = comparable(reply.document), comparable(expect["object"])
        got["warnings"], wanted["warnings"] = sorted(reply.warnings), sorted(expect.get("warnings") or [])
        assert got == wanted
