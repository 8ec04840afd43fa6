"""Recorded patches: JSON, merge and strategic, with their errors and warnings."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.apiserver.rest.asgi import Reply, Rest, in_memory
from tests.apiserver.rest.recorded import comparable, expand, masked, without_times
from tests.support.recordings import read

CASES = read("api_patch.jsonl")
_OBJECT = re.compile(r'(?P<before>Invalid value: ")(?P<object>\{\\"apiVersion.*\})(?P<after>": )')
AGENT = {"user-agent": "golden-client/1.0"}
MEDIA = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


def _masked(text: str) -> str:
    """Mask what differs from run to run, also in a whole object that a message shows."""
    return _OBJECT.sub(_with_sorted_members, masked(without_times(text)))


def _with_sorted_members(found: re.Match[str]) -> str:
    """Return an object shown in a message with its members in order: the patch library reorders some."""
    shown = json.loads(json.loads(f'"{found["object"]}"'))
    return f"{found['before']}{json.dumps(shown, sort_keys=True)}{found['after']}"


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
        if name in what
    }
    query = expand(query)
    kind = what["type"]
    live = await rest.json("GET", case["path"])
    version = live.document["metadata"].get("resourceVersion", "") if live.code == 200 else ""
    if kind in ("get", "delete"):
        return await rest.json(kind.upper(), path, None, query, **AGENT)
    if kind == "update":
        document = copy.deepcopy(live.document)
        for where, value in what["set"]:
            set_path(document, where, substitute(expand(value), version))
        return await rest.json("PUT", path, document, query, **AGENT)
    if kind == "patch-missing":
        path, kind = path.rpartition("/")[0] + "/nope", what["as"]
    body = what["raw"].encode() if "raw" in what else json.dumps(
        substitute(expand(what["body"]), version)
    ).encode()  # fmt: skip
    headers = {"accept": "application/json", "content-type": what.get("contentType") or MEDIA[kind], **AGENT}
    return await rest.request("PATCH", path, query, body, headers)


def with_managers(document: dict[str, Any]) -> dict[str, Any]:
    """An object to compare: with its managedFields, in an order of their own and without times."""
    made = comparable(document)
    entries = [
        {name: value for name, value in entry.items() if name != "time"}
        for entry in document["metadata"].get("managedFields", [])
    ]
    if entries:
        made["metadata"]["managedFields"] = sorted(
            entries,
            key=lambda entry: [
                entry.get(name, "") for name in ("operation", "manager", "subresource", "apiVersion")
            ],
        )
    return made


def causes(found: Any) -> list[tuple[str, str, str]]:
    return sorted((c.get("reason", ""), c.get("message", ""), c.get("field", "")) for c in found or [])


def failure(status: dict[str, Any]) -> dict[str, Any]:
    """A Status as the recorded answers have it."""
    details = status.get("details", {})
    found = {
        "reason": status.get("reason", ""),
        "message": status.get("message", ""),
        "causes": details.get("causes"),
        "detailsName": details.get("name", ""),
        "detailsKind": details.get("kind", ""),
        "detailsGroup": details.get("group", ""),
    }
    return found


def comparable_failure(found: dict[str, Any]) -> dict[str, Any]:
    """Messages of several causes list them in any order, and dumps of whole objects differ."""
    names = ("reason", "detailsName", "detailsKind", "detailsGroup")
    made: dict[str, Any] = {name: found.get(name, "") for name in names}
    message = _masked(found["message"])
    several = len(found.get("causes") or []) > 1
    made["message"] = sorted(filter(None, re.split(r", |\n|[\[\]]", message))) if several else message
    made["causes"] = [tuple(_masked(text) for text in cause) for cause in causes(found.get("causes"))]
    return made


async def version_of(rest: Rest, case: dict[str, Any]) -> str:
    live = await rest.json("GET", case["path"])
    return str(live.document["metadata"]["resourceVersion"]) if live.code == 200 else ""


async def prepare(rest: Rest, case: dict[str, Any]) -> None:
    """Make the case's object; compare the last answer."""
    if case.get("object"):
        where = case["path"].rpartition("/")[0]
        made = await rest.json("POST", where, expand(case["object"]), {"fieldManager": "creator"})
        assert made.code == 201, made.body
    if case.get("status"):
        live = (await rest.json("GET", case["path"])).document
        document, query = {**live, "status": case["status"]}, {"fieldManager": "status-setter"}
        made = await rest.json("PUT", f"{case['path']}/status", document, query)
        assert made.code == 200, made.body
    if case.get("created"):
        assert made.code == case["created"]["code"]
        assert with_managers(made.document) == with_managers(case["created"]["object"])


_Compared = list[tuple[Any, Any]]
"""(got, wanted) of each step."""


@dataclass(slots=True)
class Played:
    """What the steps of a case answered, and whether each of them changed the object's resource version."""

    answers: _Compared = field(default_factory=list)
    changes: _Compared = field(default_factory=list)


_played: dict[str, Played] = {}


async def play(case: dict[str, Any]) -> Played:
    """Play a case; a case that was played before has the same outcome."""
    if case["name"] not in _played:
        _played[case["name"]] = await _play(case)
    return _played[case["name"]]


async def _play(case: dict[str, Any]) -> Played:
    rest, played = await in_memory(), Played()
    await prepare(rest, case)
    for what in case["steps"]:
        expect = what["expect"]
        before = await version_of(rest, case)
        reply = await step(rest, case, what)
        changed = await version_of(rest, case) != before
        played.answers.append(_answers(reply, expect))
        if expect["code"] == 0:
            played.changes.append((changed, False))
        elif "resourceVersionChanged" in expect and not what.get("dryRun"):
            played.changes.append((changed, expect["resourceVersionChanged"]))
    return played


def _answers(reply: Reply, expect: dict[str, Any]) -> tuple[Any, Any]:
    if expect["code"] == 0:
        # The real server's handler panics: there is no answer, and nothing is written.
        return reply.code, 500
    got: dict[str, Any] = {"code": reply.code, "warnings": sorted(reply.warnings)}
    wanted: dict[str, Any] = {"code": expect["code"], "warnings": sorted(expect.get("warnings") or [])}
    if expect["code"] >= 400:
        got["error"], wanted["error"] = (
            comparable_failure(failure(reply.document)),
            comparable_failure(expect),
        )
    elif "object" in expect:
        got["object"], wanted["object"] = with_managers(reply.document), with_managers(expect["object"])
    return got, wanted


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
async def test_patches_are_answered_as_by_the_real_server(case: dict[str, Any]) -> None:
    answers = (await play(case)).answers
    assert [got for got, _ in answers] == [wanted for _, wanted in answers]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
async def test_patches_change_the_object_as_in_the_real_server(case: dict[str, Any]) -> None:
    changes = (await play(case)).changes
    assert [got for got, _ in changes] == [wanted for _, wanted in changes]
