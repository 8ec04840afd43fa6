"""Sends what `generate.py` makes, and holds the server to its promises.

- Nothing is a 500, but for the few answers that upstream gives as one (`_known`).
- What was acknowledged is what is read afterwards, and its resourceVersion has grown unless nothing changed.
- What was refused, or only tried, has changed nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import Kind
from tests.apiserver.fuzz.generate import Document, Generator
from tests.apiserver.rest.asgi import Reply, Rest, in_memory

_POD_SPEC = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
_LABELS = {"app": "a"}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": _POD_SPEC}
_WORKLOAD = {"replicas": 1, "selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}
VALID: dict[Kind[Any], Document] = {
    kinds.POD: {"spec": _POD_SPEC},
    kinds.NODE: {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
    kinds.CONFIG_MAP: {"data": {"a": "1"}, "binaryData": {"b": "AAAA"}},
    kinds.SECRET: {"data": {"a": "AAAA"}, "type": "Opaque"},
    kinds.SERVICE: {"spec": {"ports": [{"port": 80}], "selector": _LABELS}},
    kinds.NAMESPACE: {},
    kinds.PERSISTENT_VOLUME_CLAIM: {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    kinds.PERSISTENT_VOLUME: {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"},
        }
    },
    kinds.REPLICA_SET: {"spec": _WORKLOAD},
    kinds.DEPLOYMENT: {"spec": _WORKLOAD},
    kinds.STATEFUL_SET: {"spec": {**_WORKLOAD, "serviceName": "s"}},
    kinds.DAEMON_SET: {"spec": {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}},
    kinds.REPLICATION_CONTROLLER: {"spec": {"replicas": 1, "selector": _LABELS, "template": _TEMPLATE}},
    kinds.POD_DISRUPTION_BUDGET: {"spec": {"minAvailable": 1, "selector": {"matchLabels": _LABELS}}},
    kinds.PRIORITY_CLASS: {"value": 5},
    kinds.STORAGE_CLASS: {"provisioner": "x.io/y"},
    kinds.LEASE: {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}},
    kinds.CSI_NODE: {"spec": {"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["a"]}]}},
    kinds.EVENT: {
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "R",
        "message": "m",
        "type": "Normal",
    },
    kinds.LIMIT_RANGE: {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
    kinds.RESOURCE_QUOTA: {"spec": {"hard": {"pods": "1"}}},
    kinds.SERVICE_ACCOUNT: {},
    kinds.JOB: {"spec": {"template": {"spec": {**_POD_SPEC, "restartPolicy": "Never"}}}},
    kinds.ENDPOINT_SLICE: {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]},
    kinds.CSI_DRIVER: {"spec": {"attachRequired": True}},
    kinds.CSI_STORAGE_CAPACITY: {"storageClassName": "s", "capacity": "1Gi"},
    kinds.VOLUME_ATTACHMENT: {
        "spec": {"attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    },
    kinds.ROLE: {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]},
    kinds.CLUSTER_ROLE: {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]},
    kinds.ROLE_BINDING: {
        "roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
        "subjects": [{"kind": "User", "name": "u"}],
    },
    kinds.DEVICE_CLASS: {"spec": {"selectors": [{"cel": {"expression": "device.driver == 'x'"}}]}},
    kinds.RESOURCE_CLAIM: {
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    },
    kinds.RESOURCE_SLICE: {
        "spec": {
            "driver": "d.io",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "n",
            "devices": [{"name": "d"}],
        }
    },
    kinds.FLOW_SCHEMA: {
        "spec": {
            "priorityLevelConfiguration": {"name": "exempt"},
            "matchingPrecedence": 7,
            "rules": [
                {
                    "subjects": [{"kind": "User", "user": {"name": "a"}}],
                    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                }
            ],
        }
    },
}
KINDS = list(VALID)
_FORMS = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_PROTOBUF = "application/vnd.kubernetes.protobuf"
NAME = "fuzzed"
# Through `status` metadata may become what an update of the object itself refuses, as upstream's does.
_FREED = json.dumps(
    {"metadata": dict.fromkeys(("finalizers", "generateName", "labels", "annotations", "ownerReferences"))}
).encode()


class Broken(AssertionError):
    """The server did not keep a promise."""


class Player:
    """One server with one object of one kind at a time."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self.codes: Counter[str] = Counter()

    @classmethod
    async def started(cls) -> Player:
        return cls(await in_memory())

    async def play(self, seed: int, steps: int = 8) -> None:
        """Some requests about an object; raises Broken with what was sent and answered."""
        make = Generator(seed)
        kind = make.random.choice(KINDS)
        valid = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": NAME, **({"namespace": "default"} if kind.namespaced else {})},
            **VALID[kind],
        }
        collection = f"{_base(kind)}/{kind.plural}"
        await self._clear(collection)
        made = await self._ask("POST", collection, json.dumps(valid).encode(), "application/json")
        if made.code != 201:
            raise Broken(f"seed {seed}: a valid {kind.kind} is refused: {made.body!r}")
        for step in range(steps):
            await self._step(make, kind, valid, collection, f"seed {seed} step {step}")

    async def _clear(self, collection: str) -> None:
        path = f"{collection}/{NAME}"
        now = b'{"gracePeriodSeconds":0,"propagationPolicy":"Background"}'
        for _ in range(3):
            await self._ask("DELETE", path, now, "application/json")
            found = await self._ask("GET", path)
            if found.code == 404:
                return
            freed = await self._ask("PATCH", path, _FREED, _FORMS["merge"])
            if collection.endswith("/namespaces"):
                body = {**found.document, "spec": {"finalizers": []}}
                await self._ask("PUT", f"{path}/finalize", json.dumps(body).encode(), "application/json")
        raise Broken(f"{path} does not go away: {freed.body!r}: {found.body!r}")

    async def _step(
        self, make: Generator, kind: Kind[Any], valid: Document, collection: str, where: str
    ) -> None:
        path = f"{collection}/{NAME}"
        before = await self._ask("GET", path)
        current = before.document if before.code == 200 else valid
        method, form, content, body = self._request(make, kind, valid, current)
        if body is None:
            return
        if method == "POST":
            await self._clear(collection)
            before = await self._ask("GET", path)
        target = collection if method == "POST" else path
        status = "status" in kind.subresources and method != "POST" and make.chance(4)
        if status:
            target += "/status"
        query: dict[str, Any] = {}
        if make.chance(6):
            query["dryRun"] = "All"
        if make.chance(3):
            query["fieldValidation"] = make.random.choice(["Strict", "Warn", "Ignore"])
        if form == "apply":
            query |= {"fieldManager": "fuzz", "force": "true"}
        reply = await self._ask(method, target, body, content, query)
        said = f"{where}: {method} {target} {query} {content}\n{body!r}\n-> {reply.code} {reply.body!r}"
        self.codes[f"{form} {reply.code}"] += 1
        if reply.code >= 500 and not _known(form, reply):
            raise Broken(said)
        if reply.code == 201 and reply.document["metadata"]["name"] != NAME:
            path = f"{collection}/{reply.document['metadata']['name']}"
            before = Reply(404)
        after = await self._ask("GET", path)
        if after.code >= 500:
            raise Broken(f"{said}\nthen GET {after.body!r}")
        if reply.code >= 400 or "dryRun" in query:
            if after.body != before.body:
                raise Broken(f"{said}\nchanged {before.body!r}\nto {after.body!r}")
            return
        if after.code == 404 and "deletionTimestamp" in reply.document.get("metadata", {}):
            return
        if after.document != reply.document:
            raise Broken(f"{said}\nreads as {after.body!r}")
        if before.code == 200:
            old, new = (int(each.document["metadata"]["resourceVersion"]) for each in (before, after))
            if new < old or (new == old and after.body != before.body):
                raise Broken(f"{said}\nversion {old} -> {new}: {before.body!r}")
        accept = {"accept": f"{_PROTOBUF}, application/yaml"}
        other = await self._rest.request("GET", path, None, b"", accept)
        table = await self._rest.request(
            "GET", path, None, b"", {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        )
        if other.code != 200 or table.code != 200:
            raise Broken(f"{said}\nas protobuf {other.code}, as Table {table.code}: {table.body!r}")

    def _request(
        self, make: Generator, kind: Kind[Any], valid: Document, current: Document
    ) -> tuple[str, str, str, bytes | None]:
        """(method, what it is, content type, body)."""
        pick = make.random.randrange(8)
        if pick < 4:
            method = "POST" if pick == 0 else "PUT"
            base = valid if make.chance(2) else current
            document = make.body(kind, base)
            form = make.random.choice(["json", "json", "yaml", "protobuf"])
            if form == "protobuf":
                return method, "protobuf body", _PROTOBUF, make.as_protobuf(kind, document)
            if form == "yaml":
                return method, "yaml body", "application/yaml", make.as_yaml(document)
            return method, "json body", "application/json", make.as_json(document)
        form = ("json", "merge", "strategic", "apply")[pick - 4]
        if form == "json":
            patch = make.as_json(make.json_patch(kind, current))
        elif form == "merge":
            patch = make.as_json(make.merge_patch(kind))
        elif form == "strategic":
            patch = make.as_json(make.strategic_patch(kind))
        else:
            patch = make.as_yaml(make.body(kind, valid))
        return "PATCH", form, _FORMS[form], patch

    async def _ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        content: str = "",
        query: dict[str, Any] | None = None,
    ) -> Reply:
        headers = {"accept": "application/json"}
        if content:
            headers["content-type"] = content
        reply = await self._rest.request(method, path, query, body, headers)
        if b"Internal error occurred" in reply.body and reply.code >= 500:
            raise Broken(f"{method} {path} {query} {body!r}\n-> {reply.code} {reply.body!r}")
        return reply


def _base(kind: Kind[Any]) -> str:
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    return f"{base}/namespaces/default" if kind.namespaced else base


_BARE = ("resourceVersion should not be set on objects to be created", "strconv.ParseUint: parsing ")


def _known(form: str, reply: Reply) -> bool:
    """Upstream answers some mistakes with the bare error as a 500, without a reason."""
    status = reply.document
    if "reason" in status:
        return False
    return form in ("strategic", "apply") or status["message"].startswith(_BARE)
