"""Containers are added to a pod that runs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.rest.asgi import Reply, Rest, in_memory

_POD = "/api/v1/namespaces/default/pods/p"
_PATH = f"{_POD}/ephemeralcontainers"
_STRATEGIC = "application/strategic-merge-patch+json"


@pytest.fixture
async def rest() -> Rest:
    rest = await in_memory()
    document = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = await rest.json("POST", _POD.removesuffix("/p"), document)
    assert made.code == 201, made.body
    return rest


async def _add(rest: Rest, name: str = "debug", **more: Any) -> Reply:
    patch = {"spec": {"ephemeralContainers": [{"name": name, "image": "tools", **more}]}}
    return await rest.json("PATCH", _PATH, patch, content=_STRATEGIC)


async def test_one_is_added(rest: Rest) -> None:
    reply = await _add(rest, targetContainerName="c")
    assert reply.code == 200, reply.body
    (added,) = reply.document["spec"]["ephemeralContainers"]
    assert added["targetContainerName"] == "c"
    assert added["imagePullPolicy"] == "Always"
    assert added["terminationMessagePath"] == "/dev/termination-log"
    assert reply.document["metadata"]["generation"] == 2
    assert (await rest.json("GET", _PATH)).document["spec"]["ephemeralContainers"] == [added]


async def test_nothing_else_changes(rest: Rest) -> None:
    document = (await rest.json("GET", _PATH)).document
    document["metadata"]["labels"] = {"a": "b"}
    document["spec"]["containers"][0]["image"] = "other"
    document["status"] = {"phase": "Failed"}
    changed = (await rest.json("PUT", _PATH, document)).document
    assert "labels" not in changed["metadata"]
    assert changed["spec"]["containers"][0]["image"] == "i"
    assert changed["status"]["phase"] == "Pending"


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("c", {}, 'spec.ephemeralContainers[0].name: Duplicate value: "c"'),
        ("d", {"targetContainerName": "x"},
         'spec.ephemeralContainers[0].targetContainerName: Not found: "x"'),
        ("d", {"ports": [{"containerPort": 1}]},
         "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container"),
    ],
)  # fmt: skip
async def test_what_they_may_not_say(rest: Rest, name: str, more: Any, message: str) -> None:
    reply = await _add(rest, name, **more)
    assert (reply.code, reply.document["message"]) == (422, f'Pod "p" is invalid: {message}')


async def test_they_stay_as_they_are(rest: Rest) -> None:
    document = (await _add(rest)).document
    document["spec"]["ephemeralContainers"][0]["image"] = "other"
    reply = await rest.json("PUT", _PATH, document)
    assert reply.code == 422
    assert reply.document["message"] == (
        'Pod "p" is invalid: spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may'
        " not be changed\n"
        "@@ -1,6 +1,6 @@\n"
        " {\n"
        '  "Name": "debug",\n'
        '- "Image": "tools",\n'
        '+ "Image": "other",\n'
        '  "Command": null,\n'
        '  "Args": null,\n'
        '  "WorkingDir": "",\n'
    )
    document["spec"]["ephemeralContainers"] = []
    reply = await rest.json("PUT", _PATH, document)
    assert reply.code == 422
    assert 'existing ephemeral containers "debug" may not be removed' in reply.document["message"]
