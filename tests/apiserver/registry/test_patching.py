"""Patches: the short way through the patched parts is the same as the long one; many at once all count."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from nominee.apiserver.objects.requests import Get, Patch, PatchKind, WriteOptions
from nominee.apiserver.registry.writes import patching
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core
from nominee.machinery.patch.json_patch import merge_patch, strategic_merge_patch
from nominee.machinery.wire import codec, presence
from tests.apiserver.cache.test_watch_cache import LIMIT_SECONDS, running
from tests.apiserver.registry.test_registry import POD, create, started
from tests.support.etcd import ThrowawayEtcd

DOCUMENT: dict[str, Any] = {
    **POD,
    "metadata": {"name": "p", "namespace": "default", "labels": {"a": "b"}, "finalizers": ["x.io/f"]},
    "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]},
}
PATCHES: list[dict[str, Any]] = [
    {},
    {"status": {"nominatedNodeName": "n", "conditions": [{"type": "PodScheduled", "status": "True"}]}},
    {"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}},
    {"status": None},
    {"metadata": {"labels": {"a": None, "c": "d"}}, "spec": {"nodeName": "n"}},
    {"metadata": {"finalizers": ["x.io/g"]}},
    {"spec": {"containers": [{"name": "c", "image": "other"}]}},
    {"spec": {"tolerations": [{"key": "k"}]}, "bogus": {"a": 1}},
]


@pytest.mark.parametrize("patch_kind", [PatchKind.MERGE, PatchKind.STRATEGIC])
@pytest.mark.parametrize("patch", PATCHES, ids=json.dumps)
def test_parts_and_the_whole_give_the_same(patch_kind: PatchKind, patch: dict[str, Any]) -> None:
    current = codec.from_json(core.Pod, DOCUMENT)
    whole = codec.to_json(current)
    if patch_kind is PatchKind.MERGE:
        wanted = codec.from_json(core.Pod, merge_patch(whole, patch))
    else:
        wanted = codec.from_json(core.Pod, strategic_merge_patch("k8s.io.api.core.v1.Pod", whole, patch))
    got = patching.apply(kinds.POD, patch_kind, patch, current)
    for message in (got, wanted):
        presence.fill(message)
    assert got == wanted


async def test_concurrent_patches_all_count(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        await create(registry, kinds.CONFIG_MAP, {"metadata": {"name": "c"}})

        async def add(number: int) -> None:
            patch = json.dumps({"data": {f"k{number}": "v"}}).encode()
            await registry.perform(Patch(kinds.CONFIG_MAP, "default", "c", "", PatchKind.MERGE, patch))

        with anyio.fail_after(LIMIT_SECONDS):
            async with anyio.create_task_group() as group:
                for number in range(20):
                    group.start_soon(add, number)
        found = (await registry.perform(Get(kinds.CONFIG_MAP, "default", "c"))).message
        assert set(found.data) == {f"k{number}" for number in range(20)}


@pytest.mark.parametrize(
    ("patch", "options", "code", "text"),
    [
        (b"{", WriteOptions(), 400, "unexpected end of JSON input"),
        (b"[]", WriteOptions(), 400, "cannot unmarshal array into Go value"),
        (b'{"metadata":{"namespace":"other"}}', WriteOptions(), 400, "does not match the namespace sent"),
        (b'{"metadata":{"name":"other"}}', WriteOptions(), 400, "does not match the name on the URL"),
        (b"{}", WriteOptions(force=True), 422, "may not be specified for non-apply patch"),
        (b"{}", WriteOptions(field_manager="x" * 129), 422, "may not be more than 128 bytes"),
        (b'{"data":{"$patch":"bogus"}}', WriteOptions(), 500, "unknown patch type"),
    ],
)
async def test_what_is_wrong_with_a_patch(
    etcd: ThrowawayEtcd, patch: bytes, options: WriteOptions, code: int, text: str
) -> None:
    async with running(etcd) as bench:
        registry = await started(bench)
        await create(registry, kinds.CONFIG_MAP, {"metadata": {"name": "c"}, "data": {"a": "1"}})
        with pytest.raises(StatusError) as caught:
            await registry.perform(
                Patch(kinds.CONFIG_MAP, "default", "c", "", PatchKind.STRATEGIC, patch, options)
            )
        assert caught.value.code == code
        assert text in caught.value.message
        with pytest.raises(StatusError) as caught:
            await registry.perform(Patch(kinds.CONFIG_MAP, "default", "none", "", PatchKind.MERGE, b"{}"))
        assert errors.is_not_found(caught.value)
