"""One recorded session with kube-apiserver 1.36.2, request by request: the same codes, bodies and headers.

tests/golden/exchanges/session.jsonl: what a client asked in order, and what it got. What other components did
between two requests (a kubelet that runs pods, the disruption controller) is done by hand (`BETWEEN`). uids,
times and resource versions differ from run to run and are masked; a recorded resourceVersion in a request
stands for ours of the same object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from nominee.apiserver.cache.watch_cache import CacheLimits
from tests.apiserver.cache.test_watch_cache import running
from tests.apiserver.rest.asgi import Reply, Rest
from tests.apiserver.rest.test_api_list import started
from tests.support.etcd import ThrowawayEtcd
from tests.support.recordings import EXCHANGES

PODS = "/api/v1/namespaces/default/pods"
_MASKS = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"\bgen-[a-z0-9]{5}\b"), "gen-<x>"),
    (re.compile(r"current: \d+"), "current: <n>"),
    (re.compile(r"^\d+s$"), "<age>"),
    # What changed of the Go struct, line by line.
    (re.compile(r"\n@@ .*", re.DOTALL), ""),
)
_THEN = "2026-11-21T02:22:04Z"
_CONDITIONS, _BOUND = (
    [{"type": name, "status": "True", "lastTransitionTime": _THEN} for name in names]
    for names in (
        ("Initialized", "Ready", "ContainersReady"),
        ("Initialized", "Ready", "ContainersReady", "PodScheduled"),
    )
)
_RUNNING = {"phase": "Running", "startTime": _THEN}
_STARTED = {"startedAt": _THEN}
_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_HEALTHY = {"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
_INSUFFICIENT = {
    "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
    "observedGeneration": 1, "lastTransitionTime": _THEN,
}  # fmt: skip


def _ran(conditions: list[dict[str, Any]], **container: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "", "imageID": "", "ready": False, "restartCount": 0, **container}
    return {**_RUNNING, "conditions": conditions, "containerStatuses": [container]}


_CPU = {"cpu": "100m"}
# Before a request: whose status is put, and what.
BETWEEN: Mapping[str, tuple[str, dict[str, Any]]] = {
    "resize_without_status_resources": (f"{PODS}/a", _ran(_BOUND, state={"running": _STARTED})),
    "resize_get": (f"{PODS}/a", _ran(_BOUND, allocatedResources=_CPU, resources={"requests": _CPU})),
    "pdb_status": (f"{_BUDGETS}/b1", {**_HEALTHY, "disruptionsAllowed": 0, "conditions": [_INSUFFICIENT]}),
    "evict_blocked": (
        f"{PODS}/e1",
        _ran(_CONDITIONS, image="i", imageID="i", ready=True, started=True, state={"running": _STARTED}),
    ),
}


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: "<version>" if key == "resourceVersion" and each else _masked(each)
            for key, each in value.items()
            if key != "managedFields"
        }
    if isinstance(value, list):
        return [_masked(each) for each in value]
    if isinstance(value, str):
        for pattern, mask in _MASKS:
            value = pattern.sub(mask, value)
    return value


def _differences(got: Any, want: Any, path: str = "") -> Iterator[str]:
    if isinstance(got, dict) and isinstance(want, dict):
        for key in sorted(got.keys() | want.keys()):
            yield from _differences(got.get(key, "<missing>"), want.get(key, "<missing>"), f"{path}.{key}")
    elif isinstance(got, list) and isinstance(want, list) and len(got) == len(want):
        for index, (one, other) in enumerate(zip(got, want, strict=True)):
            yield from _differences(one, other, f"{path}[{index}]")
    elif got != want:
        yield f"{path}: got {json.dumps(got)[:300]}, want {json.dumps(want)[:300]}"


class _Player:
    """Plays the session and keeps what stands for what."""

    def __init__(self, rest: Rest) -> None:
        self.rest = rest
        self.ours: dict[str, str] = {}
        """Recorded uids and resource versions, and ours."""

    async def prepare(self) -> None:
        for name in ("n1", "n2"):
            status = {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
            await self._make("/api/v1/nodes", "v1", "Node", name, status=status)
        path = "/apis/scheduling.k8s.io/v1/priorityclasses"
        await self._make(path, "scheduling.k8s.io/v1", "PriorityClass", "high", value=1000)
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        spec = {"holderIdentity": "n1", "leaseDurationSeconds": 40}
        await self._make(path, "coordination.k8s.io/v1", "Lease", "n1", spec=spec)

    async def _make(self, path: str, version: str, kind: str, name: str, **more: Any) -> None:
        document = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **more}
        made = await self.rest.json("POST", path, document)
        assert made.code == 201, made.body

    async def put_status(self, path: str, status: dict[str, Any]) -> None:
        found = (await self.rest.json("GET", path)).document
        found["status"] = {**found["status"], **status}
        done = await self.rest.json("PUT", f"{path}/status", found)
        assert done.code == 200, done.body

    async def ask(self, case: dict[str, Any]) -> Reply:
        asked = case["request"]
        body = asked.get("body", "")
        text = body if isinstance(body, str) else json.dumps(self._translated(body))
        headers = {name: asked[name] for name in ("accept", "content-type") if name in asked}
        return await self.rest.request(
            asked["method"], asked["path"], asked.get("query"), text.encode(), headers
        )

    def _translated(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._translated(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._translated(each) for each in value]
        return self.ours.get(value, value) if isinstance(value, str) else value

    def remember(self, got: Any, want: Any) -> None:
        if isinstance(got, dict) and isinstance(want, dict) and want.get("kind") == "Pod":
            for name in ("uid", "resourceVersion"):
                if name in want["metadata"]:
                    self.ours[want["metadata"][name]] = got["metadata"][name]


def _compared(case: dict[str, Any], reply: Reply) -> Iterator[str]:
    want, headers = case["body"], case["headers"]
    if reply.code != case["status"]:
        yield f"code {reply.code}, want {case['status']}: {reply.body[:300]!r}"
        return
    if isinstance(want, str):
        if reply.body.decode() != want:
            yield f"got {reply.body[:300]!r}, want {want!r}"
    else:
        yield from _differences(_masked(reply.document), _masked(want))
    for name in ("Content-Type", "Warning", "Retry-After"):
        if reply.header(name.lower()) != headers.get(name, ""):
            yield f"{name}: got {reply.header(name.lower())!r}, want {headers.get(name, '')!r}"


async def test_a_recorded_session(etcd: ThrowawayEtcd) -> None:
    lines = (EXCHANGES / "session.jsonl").read_text(encoding="utf-8").splitlines()
    failures: list[str] = []
    async with running(etcd, CacheLimits(wait_seconds=0.2)) as bench:
        player = _Player(await started(bench))
        await player.prepare()
        for case in map(json.loads, lines):
            if case["name"] in BETWEEN:
                await player.put_status(*BETWEEN[case["name"]])
            await bench.caught_up()
            reply = await player.ask(case)
            found = list(_compared(case, reply))
            failures += [f"{case['name']}: {line}" for line in found]
            if not found and isinstance(case["body"], dict):
                player.remember(reply.document, case["body"])
    assert not failures, "\n".join(failures)
    assert len(lines) > 100
