"""The golden lists (api_list.jsonl) through Reads on a real etcd, and what they do not cover."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from apiserver.cache.reads import Reads
from apiserver.cache.watch_cache import CacheLimits
from apiserver.kinds.table import fields_of
from apiserver.objects.requests import ListOptions, WatchOptions
from machinery.api import errors, kinds
from machinery.api.errors import StatusError
from machinery.api.kinds import Kind
from machinery.api.pb import core
from machinery.wire import codec, envelope
from tests.apiserver.cache.test_watch_cache import Bench, pod, running, take
from tests.support.etcd import ThrowawayEtcd

GOLDEN = Path(os.environ.get("NOMINEE_GOLDEN", Path(__file__).parents[2] / "golden")) / "api_list.jsonl"
# Cases of parameters that only a REST front parses (limit=abc), and kinds that are not served.
_SERVED = {
    (f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}", kind.plural): kind
    for kind in kinds.KINDS
}
_PARAMETERS = {
    "labelSelector": "label_selector",
    "fieldSelector": "field_selector",
    "resourceVersion": "resource_version",
    "resourceVersionMatch": "resource_version_match",
    "continue": "continue_token",
}


def _target(path: str) -> tuple[Kind[Any], str] | None:
    prefix, _, rest = path.rpartition("/")
    namespace = ""
    if "/namespaces/" in prefix + "/":
        prefix, _, namespace = prefix.partition("/namespaces/")
    kind = _SERVED.get((prefix, rest))
    return (kind, namespace) if kind else None


def _cases() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    lines = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    return lines[0], lines[1:]


async def _create(bench: Bench, document: dict[str, Any], status: dict[str, Any] | None = None) -> int:
    kind = kinds.by_kind(document["apiVersion"], document["kind"])
    if kind is None:
        return 0
    document = {**document, **({"status": status} if status else {})}
    obj: Any = codec.from_json(kind.message, document)
    if kind.namespaced and not obj.metadata.namespace:
        obj.metadata.namespace = "default"
    # What defaulting would have done, as far as lists select by it.
    if kind is kinds.POD:
        obj.spec.restartPolicy = obj.spec.restartPolicy or "Always"
        obj.spec.schedulerName = obj.spec.schedulerName or "default-scheduler"
        obj.spec.serviceAccountName = obj.spec.serviceAccountName or "default"
        obj.status.phase = obj.status.phase or "Pending"
    return await bench.storage.create(
        kind.key(obj.metadata.namespace, obj.metadata.name), envelope.encode(obj)
    )


async def test_golden_lists(etcd: ThrowawayEtcd) -> None:
    header, cases = _cases()
    failures, passed, served = [], 0, 0
    async with running(etcd, CacheLimits(wait_seconds=0.2)) as bench:
        await bench.storage.create("/registry/namespaces/default", envelope.encode(codec.from_json(
            core.Namespace, {"metadata": {"name": "default"}})))  # fmt: skip
        reads = Reads(bench.storage, bench.cache, fields_of)
        await bench.storage.compact(await bench.storage.current_revision())
        revision = 0
        for entry in header["objects"]:
            revision = await _create(bench, entry["object"], entry.get("status")) or revision
        symbols: dict[str, str] = {}
        late = False
        for case in cases:
            note = case.get("note", "")
            target = _target(case["path"]) if "path" in case else None
            if "p99" in note and not late:
                late = True
                old = revision
                revision = await _create(bench, {"apiVersion": "v1", "kind": "Pod",
                    "metadata": {"name": "p99", "namespace": "sel"}})  # fmt: skip
                symbols.update({"$CUR": str(revision), "$OLD": str(old), "$FUTURE": str(revision + 1000000)})
            if "compaction" in note or case.get("keepsContinueAs") == "$OLDTOKEN":
                symbols["$COMPACTED"] = str(old)
            if target is None or case["expect"].get("kind", "").startswith("watch"):
                continue
            query = {name: symbols.get(value, value) for name, value in case["query"].items()}
            if not set(query) <= {*_PARAMETERS, "limit"} or not query.get("limit", "0").lstrip("-").isdigit():
                continue
            served += 1
            await bench.caught_up()
            problem = await _play(reads, case, target, query, symbols)
            if problem:
                failures.append(f"{case['name']} {case['path']} {case['query']}: {problem}")
            else:
                passed += 1
    assert not failures, f"{passed} of {served} passed\n" + "\n".join(failures)
    assert served > 100, f"only {served} cases were played"


async def _play(
    reads: Reads,
    case: dict[str, Any],
    target: tuple[Kind[Any], str],
    query: dict[str, Any],
    symbols: dict[str, str],
) -> str:
    """What is wrong with the answer, or ""."""
    kind, namespace = target
    want = case["expect"]
    options = ListOptions(
        **{_PARAMETERS[name]: value for name, value in query.items() if name != "limit"},
        limit=int(query.get("limit", "0")),
    )
    try:
        page = await reads.list(kind, namespace, options)
    except StatusError as error:
        text = want.get("message", "")
        for symbol, value in symbols.items():
            text = text.replace(symbol, value)
        got_text = error.message
        if "<rv>" in text and query.get("resourceVersion"):
            got_text = got_text.replace(f'"{query["resourceVersion"]}"', '"<rv>"')
        if (error.code, error.reason, got_text) != (want["code"], want["reason"], text):
            return f"got {error.code} {error.reason} {error.message!r}, want {want}"
        return ""
    if case.get("keepsContinueAs"):
        symbols[case["keepsContinueAs"]] = page.continue_token
    items = [f"{o.namespace}/{o.name}" if kind.namespaced else o.name for o in page.items]
    got = {"items": items, "continue": bool(page.continue_token)}
    expected = {"items": want.get("items"), "continue": want.get("continue")}
    if page.remaining is not None or "remainingItemCount" in want:
        got["remaining"], expected["remaining"] = page.remaining, want.get("remainingItemCount")
    if want.get("resourceVersion") not in ("set", None):
        got["rv"] = page.resource_version
        expected["rv"] = symbols.get(want["resourceVersion"], want["resourceVersion"])
    return "" if got == expected else f"got {got}, want {expected}"


async def test_pages_stay_at_the_first_pages_revision_while_objects_change(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        reads = Reads(bench.storage, bench.cache, fields_of)
        for name in "abcd":
            await bench.create(pod(name, app=name))
        first = await reads.list(kinds.POD, "", ListOptions(limit=2))
        await bench.create(pod("c2"))
        rest = await reads.list(kinds.POD, "", ListOptions(limit=9, continue_token=first.continue_token))
        assert [o.name for o in [*first.items, *rest.items]] == ["a", "b", "c", "d"]
        assert rest.resource_version == first.resource_version
        # By a selector that few match, over a state that only etcd has.
        found = await reads.list(
            kinds.POD,
            "default",
            ListOptions(
                label_selector="app in (a,d)",
                resource_version=first.resource_version,
                resource_version_match="Exact",
            ),
        )
        assert [o.name for o in found.items] == ["a", "d"]


async def test_a_compacted_token_is_expired_and_offers_to_go_on(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        reads = Reads(bench.storage, bench.cache, fields_of)
        for name in "abc":
            await bench.create(pod(name))
        first = await reads.list(kinds.POD, "", ListOptions(limit=1))
        later = await bench.create(pod("d"))
        await bench.cache.wait_until(later)
        await bench.storage.compact(later)
        with pytest.raises(StatusError) as caught:
            await reads.list(kinds.POD, "", ListOptions(limit=1, continue_token=first.continue_token))
        assert errors.is_gone(caught.value)
        token = getattr(caught.value.to_message().metadata, "continue")  # a Python keyword
        rest = await reads.list(kinds.POD, "", ListOptions(continue_token=token))
        assert [o.name for o in rest.items] == ["b", "c", "d"]
        assert rest.resource_version == str(later)


async def test_get_reads_etcd_or_the_cache(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        reads = Reads(bench.storage, bench.cache, fields_of)
        revision = await bench.create(pod("a"))
        for version in ("", str(revision), "0"):
            found = await reads.get(kinds.POD, "default", "a", resource_version=version)
            assert found is not None
            assert found.message.metadata.resourceVersion == str(revision)
        assert await reads.get(kinds.POD, "default", "b") is None
        with pytest.raises(StatusError, match='parsing "x": invalid syntax') as caught:
            await reads.get(kinds.POD, "default", "a", resource_version="x")
        assert caught.value.code == 500


async def test_a_watch_selects_by_fields_and_begins_consistently(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        reads = Reads(bench.storage, bench.cache, fields_of)
        await bench.create(pod("a"))
        await bench.create(pod("b"))
        options = WatchOptions(field_selector="metadata.name=b")
        async with await reads.watch(kinds.POD, "", options) as watcher:
            assert [e.object.name for e in await take(watcher, 1)] == ["b"]
        with pytest.raises(StatusError, match="field label not supported: bogus"):
            await reads.watch(kinds.POD, "", WatchOptions(field_selector="bogus=1"))
