"""Recorded lists over REST: selectors, paging and resource versions of all that is served."""

from __future__ import annotations

from typing import Any

from apiserver.reads import Reads
from apiserver.registry import Registry, bootstrap
from apiserver.watch_cache import CacheLimits
from machinery import kinds
from machinery.clock import SystemClock
from machinery.versions import Gates
from tests.apiserver.registry.rules_player import registry_of
from tests.apiserver.rest.asgi import VERSION, Rest, front_over, golden
from tests.apiserver.test_watch_cache import Bench, running
from tests.support.etcd import ThrowawayEtcd


async def started(bench: Bench) -> Rest:
    """The whole registry on a real etcd."""
    made = registry_of(bench, version=VERSION, disabled=(), clock=SystemClock())
    registry = Registry(
        bench.storage,
        bench.cache,
        Reads(bench.storage, bench.cache),
        gates=Gates("apiserver", VERSION),
        clock=SystemClock(),
        rng=made._rng,
    )
    await bootstrap(registry)
    return front_over(registry, SystemClock())


def _served(path: str) -> bool:
    group = path.split("/")[2] if path.startswith("/apis/") else ""
    return any(kind.group == group and kind.plural == path.rpartition("/")[2] for kind in kinds.KINDS)


async def _create(rest: Rest, entry: dict[str, Any]) -> None:
    document = entry["object"]
    kind = kinds.by_kind(document["apiVersion"], document["kind"])
    if kind is None:
        return
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    namespace = document["metadata"].get("namespace", "default")
    path = f"{base}/namespaces/{namespace}/{kind.plural}" if kind.namespaced else f"{base}/{kind.plural}"
    made = await rest.json("POST", path, document)
    assert made.code == 201, made.body
    if entry.get("status"):
        changed = {**made.document, "status": entry["status"]}
        done = await rest.json("PUT", f"{path}/{document['metadata']['name']}/status", changed)
        assert done.code == 200, done.body


async def test_label_field_and_page_lists(etcd: ThrowawayEtcd) -> None:
    header, *cases = golden("api_list")
    failures, played = [], 0
    async with running(etcd, CacheLimits(wait_seconds=0.2)) as bench:
        rest = await started(bench)
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": header["namespace"]}}
        assert (await rest.json("POST", "/api/v1/namespaces", space)).code == 201
        for entry in header["objects"]:
            await _create(rest, entry)
        symbols: dict[str, str] = {}
        for case in cases:
            if case.get("family") not in ("label", "field", "both", "page") or case.get("note"):
                continue
            if not _served(case["path"]) or any(
                str(value).startswith("$") and value not in symbols for value in case["query"].values()
            ):
                continue
            want = case["expect"]
            query = {name: symbols.get(str(value), value) for name, value in case["query"].items()}
            reply = await rest.json("GET", case["path"], None, query)
            played += 1
            if reply.code != want["code"]:
                failures.append(f"{case['name']} {query}: code {reply.code}, want {want['code']}")
                continue
            found = reply.document
            if reply.code >= 400:
                if "message" in want and found["message"] != want["message"]:
                    failures.append(f"{case['name']}: {found['message']!r}, want {want['message']!r}")
                continue
            token = found["metadata"].get("continue", "")
            if case.get("keepsContinueAs"):
                symbols[case["keepsContinueAs"]] = token
            names = [
                "/".join(filter(None, (i["metadata"].get("namespace"), i["metadata"]["name"])))
                for i in found["items"]
            ]
            if "items" in want and kinds.PRIORITY_CLASS.plural not in case["path"]:
                wanted = [name for name in want["items"] if not name.startswith("default/kube")]
                if names != wanted:
                    failures.append(f"{case['name']} {query}: {names}, want {wanted}")
            if bool(token) != bool(want.get("continue")):
                failures.append(f"{case['name']}: continue {bool(token)}")
            if found["metadata"].get("remainingItemCount") != want.get("remainingItemCount"):
                failures.append(f"{case['name']}: remaining {found['metadata'].get('remainingItemCount')}")
    assert not failures, f"{len(failures)} of {played}\n" + "\n".join(failures)
    assert played > 80, played
