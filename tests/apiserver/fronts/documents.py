"""Objects that the tests of both fronts write, and checks of the outcomes."""

from __future__ import annotations

from typing import Any

from nominee.machinery.api.kinds import POD
from tests.apiserver.fronts.adapter import Api, Document, Outcome

STREAMED_LIST: dict[str, Any] = {
    "sendInitialEvents": True,
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": True,
}


def pod(name: str, **more: Any) -> Document:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    return {"metadata": {"name": name, **more}, "spec": {"containers": [container]}}


def config_map(name: str, data: dict[str, str] | None = None, **more: Any) -> Document:
    return {"metadata": {"name": name, **more}, "data": data or {}}


def replica_set(name: str) -> Document:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod("x")["spec"]}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    }


def made(outcome: Outcome) -> Document:
    assert outcome.code == 200, outcome
    return outcome.document


def refused(outcome: Outcome, code: int, reason: str) -> Outcome:
    assert (outcome.code, outcome.document.get("reason", "")) == (code, reason), outcome
    assert (outcome.document["kind"], outcome.document["status"]) == ("Status", "Failure")
    return outcome


def made_binding(api: Api, name: str, space: str, node: str) -> Outcome:
    body = {"metadata": {"name": name, "namespace": space}, "target": {"kind": "Node", "name": node}}
    return api.create(POD, body, space, name=name, subresource="binding")
