"""Recorded lists over REST: selectors, paging and resource versions of all that is served."""

from __future__ import annotations

import base64
import json
import random
import re
from collections import Counter
from typing import Any

from nominee.apiserver.cache.reads import Reads
from nominee.apiserver.cache.watch_cache import CacheLimits
from nominee.apiserver.kinds.table import fields_of
from nominee.apiserver.process.bootstrap import bootstrap
from nominee.apiserver.registry.registry import Registry
from nominee.machinery.api import kinds
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import SystemClock
from tests.apiserver.cache.test_watch_cache import Bench, running
from tests.apiserver.rest.asgi import VERSION, Rest, front_over
from tests.support.etcd import ThrowawayEtcd
from tests.support.recordings import read


async def started(bench: Bench) -> Rest:
    """The whole registry on a real etcd."""
    registry = Registry(
        bench.storage,
        bench.cache,
        Reads(bench.storage, bench.cache, fields_of),
        gates=Gates("apiserver", VERSION),
        clock=SystemClock(),
        rng=random.Random(1),
    )
    await bootstrap(registry)
    return front_over(registry, SystemClock())


async def _create(rest: Rest, entry: dict[str, Any]) -> None:
    document = entry["object"]
    kind = kinds.by_kind(document["apiVersion"], document["kind"])
    assert kind is not None, document["kind"]
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    namespace = document["metadata"].get("namespace", "default")
    path = f"{base}/namespaces/{namespace}/{kind.plural}" if kind.namespaced else f"{base}/{kind.plural}"
    made = await rest.json("POST", path, document)
    assert made.code == 201, made.body
    if entry.get("status"):
        changed = {**made.document, "status": entry["status"]}
        done = await rest.json("PUT", f"{path}/{document['metadata']['name']}/status", changed)
        assert done.code == 200, done.body


_VERSION = re.compile(r'resourceVersion "\d+"')


def _masked(text: str) -> str:
    return _VERSION.sub('resourceVersion "<rv>"', text)


class Player:
    """Plays cases in the file's order; `failures` by family."""

    def __init__(self, rest: Rest, bench: Bench) -> None:
        self._rest = rest
        self._bench = bench
        self._symbols: dict[str, str] = {}
        self.played: Counter[str] = Counter()
        self.failures: list[str] = []

    async def note(self, text: str, family: str) -> None:
        """What happened on the real server before a case, at the first that says so."""
        if "$CUR" not in self._symbols and (text.startswith("after creating pod") or family == "rv"):
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p99", "namespace": "sel"},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            }
            before = await self._bench.caught_up()
            await _create(self._rest, {"object": pod})
            current = await self._bench.caught_up()
            assert current == before + 1
            self._symbols |= {
                "$CUR": str(current),
                "$OLD": str(before),
                "$FUTURE": str(current + 1_000_000),
            }
        if "compaction" in text and "$COMPACTED" not in self._symbols:
            self._symbols["$COMPACTED"] = str(await self._bench.caught_up())
            for name in ("later", "latest"):
                space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                await _create(self._rest, {"object": space})
            await self._bench.storage.compact(await self._bench.caught_up())

    async def play(self, case: dict[str, Any]) -> None:
        family = case["family"]
        await self.note(case.get("note", ""), family)
        if "path" not in case:
            found = self._token_content(case)
        else:
            found = await self._answers(case)
        self.played[family] += 1
        if found:
            self.failures.append(f"{case['name']} {case.get('query')}: {found}")

    def _token_content(self, case: dict[str, Any]) -> str:
        want = case["expect"]
        token = self._tokens[0]
        data = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        wanted = (want["keys"], want["v"], want["start"].replace("<NUL>", "\0"), want["rvIsInt"])
        got = (sorted(data), data["v"], data["start"], isinstance(data["rv"], int))
        return "" if got == wanted else f"token {got}, want {wanted}"

    _tokens: tuple[str, ...] = ()

    async def _answers(self, case: dict[str, Any]) -> str:
        want = case["expect"]
        query = {name: self._symbols.get(str(value), value) for name, value in case["query"].items()}
        unknown = [value for value in query.values() if str(value).startswith("$")]
        if unknown:
            return f"no case before it keeps {', '.join(unknown)}"
        reply = await self._rest.json("GET", case["path"], None, query)
        if reply.code != want["code"]:
            return f"code {reply.code}, want {want['code']}: {reply.body[:300]!r}"
        if "/expect/kind" in case.get("unstable", ()):  # how much of a watch the recording saw
            return ""
        found = reply.document
        if reply.code >= 400:
            return self._refusal(found, want)
        if "items" not in want:
            return "" if found["kind"] == want["kind"] else f"kind {found['kind']}"
        return self._list(case, found, want, query)

    def _refusal(self, found: dict[str, Any], want: dict[str, Any]) -> str:
        message = want.get("message", "")
        for symbol in ("$FUTURE", "$CUR"):
            message = message.replace(symbol, self._symbols.get(symbol, symbol))
        got_causes, causes = (
            [(c.get("field", ""), c["reason"], _masked(c["message"])) for c in listed or ()]
            for listed in (found.get("details", {}).get("causes"), want.get("causes"))
        )
        got = (_masked(found["message"]), found.get("reason", ""), got_causes)
        wanted = (message, want.get("reason", ""), causes)
        return "" if got == wanted else f"{got}, want {wanted}"

    def _list(
        self, case: dict[str, Any], found: dict[str, Any], want: dict[str, Any], query: dict[str, Any]
    ) -> str:
        metadata = found["metadata"]
        token = metadata.get("continue", "")
        if case.get("keepsContinueAs"):
            self._symbols[case["keepsContinueAs"]] = token
        if token and query.get("limit") == "4" and not self._tokens:
            self._tokens = (token,)
        names = [
            "/".join(filter(None, (i["metadata"].get("namespace"), i["metadata"]["name"])))
            for i in found["items"]
        ]
        version = metadata["resourceVersion"]
        wanted_version = self._symbols.get(want.get("resourceVersion", ""), want.get("resourceVersion", ""))
        if wanted_version == "set":
            version = "set" if version else ""
        got = (found["kind"], names, bool(token), metadata.get("remainingItemCount"), version)
        wanted = (
            want["kind"],
            want["items"],
            bool(want.get("continue")),
            want.get("remainingItemCount"),
            wanted_version,
        )
        return "" if got == wanted else f"{got}, want {wanted}"


async def test_lists_are_answered_as_by_the_real_server(etcd: ThrowawayEtcd) -> None:
    header, *cases = read("api_list.jsonl")
    async with running(etcd, CacheLimits(wait_seconds=0.2)) as bench:
        rest = await started(bench)
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": header["namespace"]}}
        assert (await rest.json("POST", "/api/v1/namespaces", space)).code == 201
        for entry in header["objects"]:
            await _create(rest, entry)
        # The recorded server had forgotten its first revisions.
        await bench.storage.compact(3)
        player = Player(rest, bench)
        await bench.caught_up()
        for case in cases:
            await player.play(case)
    print(dict(player.played))
    assert not player.failures, f"{len(player.failures)} of {sum(player.played.values())}\n" + "\n".join(
        player.failures
    )
    assert player.played == Counter(case["family"] for case in cases)
