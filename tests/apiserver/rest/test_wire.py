"""The REST port as clients meet it: forms, streams, limits, and nonsense."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nominee.apiserver.cache.watch_cache import CacheLimits
from nominee.apiserver.fronts.rest import kubeconfig
from nominee.apiserver.fronts.rest import server as rest_server
from nominee.apiserver.fronts.rest.http.media import Media, negotiate
from nominee.apiserver.fronts.rest.http.target import parse
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.pb import core, meta, runtime
from nominee.machinery.process.http.listening import address_of
from nominee.machinery.wire import codec, envelope
from tests.apiserver.cache.test_watch_cache import LIMIT_SECONDS, running
from tests.apiserver.rest.asgi import Rest, in_memory
from tests.apiserver.rest.test_api_list import started
from tests.support.etcd import ThrowawayEtcd
from tests.support.eventually import eventually
from tests.support.patience import PATIENCE_SECONDS

PODS = "/api/v1/namespaces/default/pods"
PROTOBUF = "application/vnd.kubernetes.protobuf"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "annotations": {"a": "<b>"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


@asynccontextmanager
async def serving(etcd: ThrowawayEtcd) -> AsyncIterator[tuple[Rest, str]]:
    """A front on a port of its own."""
    async with running(etcd, CacheLimits(bookmark_seconds=0.1, wait_seconds=PATIENCE_SECONDS)) as bench:
        rest = await started(bench)
        server = rest_server.RestServer(rest.front, rest_server.listen("127.0.0.1:0"))
        async with anyio.create_task_group() as group:
            await group.start(server.run)
            yield rest, server.address
            bench.cache.end_watches()
            group.cancel_scope.cancel()


@contextmanager
def connection(address: str) -> Iterator[http.client.HTTPConnection]:
    made = http.client.HTTPConnection(address, timeout=LIMIT_SECONDS)
    try:
        yield made
    finally:
        made.close()


def get(address: str, path: str, **headers: str) -> tuple[int, str, bytes]:
    with connection(address) as client:
        client.request("GET", path, headers=headers)
        answer = client.getresponse()
        return answer.status, answer.getheader("Content-Type", ""), answer.read()


async def test_protobuf_comes_in_and_goes_out_as_bytes() -> None:
    rest = await in_memory()
    pod = codec.from_json(core.Pod, POD)
    body = envelope.encode(pod)
    headers = {"accept": f"{PROTOBUF},application/json", "content-type": PROTOBUF}
    made = await rest.request("POST", PODS, None, body, headers)
    assert (made.code, made.header("content-type")) == (201, PROTOBUF)
    found = envelope.decode(kinds.POD, made.body)
    assert found.metadata.uid
    assert found.metadata.resourceVersion
    again = await rest.request("POST", PODS, None, body, headers)
    assert again.code == 409
    unknown = runtime.Unknown.FromString(again.body[4:])
    assert (unknown.typeMeta.kind, meta.Status.FromString(unknown.raw).reason) == ("Status", "AlreadyExists")
    wrong = await rest.request("POST", "/api/v1/nodes", None, body, headers)
    assert wrong.code == 400


async def test_yaml_and_pretty_json() -> None:
    rest = await in_memory()
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata: {a: '1'}\n"
    headers = {"accept": "application/yaml", "content-type": "application/yaml"}
    made = await rest.request("POST", "/api/v1/namespaces/default/configmaps", None, body, headers)
    assert made.code == 201
    assert made.body.startswith(b"apiVersion: v1\ndata:\n  a: '1'\nkind: ConfigMap\n")
    pretty = await rest.json("GET", "/api/v1/namespaces/default/configmaps/y", None, {"pretty": "true"})
    assert pretty.body.startswith(b'{\n  "kind": "ConfigMap"')
    await rest.json("POST", PODS, POD)
    plain = await rest.json("GET", f"{PODS}/p")
    assert b'"a":"\\u003cb\\u003e"' in plain.body


async def test_a_watch_in_json_protobuf_and_tables(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd) as (rest, address):
        made = await rest.json("POST", PODS, POD)
        assert made.code == 201, made.body
        query = "?watch=1&timeoutSeconds=1&allowWatchBookmarks=true"
        code, form, body = await anyio.to_thread.run_sync(lambda: get(address, PODS + query))
        events = [json.loads(line) for line in body.splitlines()]
        assert (code, form) == (200, "application/json")
        assert [event["type"] for event in events][:2] == ["ADDED", "BOOKMARK"]
        assert events[0]["object"]["metadata"]["name"] == "p"
        assert events[1]["object"]["kind"] == "Pod"
        accept = f"{PROTOBUF};stream=watch"
        _, form, body = await anyio.to_thread.run_sync(lambda: get(address, PODS + query, Accept=accept))
        assert form == accept
        size = int.from_bytes(body[:4], "big")
        event = meta.WatchEvent.FromString(body[4 : 4 + size])
        assert event.type == "ADDED"
        assert envelope.decode(kinds.POD, event.object.raw).metadata.name == "p"
        accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
        _, _, body = await anyio.to_thread.run_sync(lambda: get(address, PODS + query, Accept=accept))
        first, second = (json.loads(line) for line in body.splitlines()[:2])
        assert first["object"]["columnDefinitions"][0]["name"] == "Name"
        assert first["object"]["rows"][0]["cells"][0] == "p"
        assert second["object"]["columnDefinitions"] is None


async def test_a_streamed_list_ends_with_its_bookmark(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd) as (rest, address):
        await rest.json("POST", PODS, POD)
        match = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        query = f"?watch=1&timeoutSeconds=1&allowWatchBookmarks=true{match}"
        _, _, body = await anyio.to_thread.run_sync(lambda: get(address, PODS + query))
        events = [json.loads(line) for line in body.splitlines()]
        assert [event["type"] for event in events[:2]] == ["ADDED", "BOOKMARK"]
        assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        code, _, body = await anyio.to_thread.run_sync(
            lambda: get(address, f"{PODS}?watch=1&sendInitialEvents=true")
        )
        assert (code, json.loads(body)["details"]["causes"][0]["field"]) == (422, "resourceVersionMatch")


async def test_a_watch_from_a_revision_that_is_gone(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd) as (_, address):
        code, _, body = await anyio.to_thread.run_sync(
            lambda: get(address, f"{PODS}?watch=1&resourceVersion=1")
        )
        event = json.loads(body)
        assert (code, event["type"], event["object"]["code"]) == (200, "ERROR", 410)
        code, _, body = await anyio.to_thread.run_sync(
            lambda: get(address, f"{PODS}?watch=1&resourceVersion=abc")
        )
        assert code == 500


async def test_lists_in_pieces_whole_and_as_protobuf(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd) as (rest, address):
        for number in range(120):
            pod = {**POD, "metadata": {"name": f"p{number:03}"}}
            assert (await rest.json("POST", PODS, pod)).code == 201
        _, _, body = await anyio.to_thread.run_sync(lambda: get(address, PODS))
        found = json.loads(body)
        assert [item["metadata"]["name"] for item in found["items"]] == [f"p{n:03}" for n in range(120)]
        assert "kind" not in found["items"][0]
        _, _, body = await anyio.to_thread.run_sync(lambda: get(address, PODS, Accept=PROTOBUF))
        pods = core.PodList.FromString(envelope.unwrap(body)[2])
        assert len(pods.items) == 120
        assert pods.metadata.resourceVersion == found["metadata"]["resourceVersion"]
        accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        _, _, body = await anyio.to_thread.run_sync(lambda: get(address, f"{PODS}?limit=2", Accept=accept))
        partial = json.loads(body)
        assert partial["kind"] == "PartialObjectMetadataList"
        assert set(partial["items"][0]) == {"kind", "apiVersion", "metadata"}
        gone = await rest.json("DELETE", PODS, {"gracePeriodSeconds": 0})
        assert (gone.code, len(gone.document["items"])) == (200, 120)
        assert (await rest.json("GET", PODS)).document["items"] == []


async def test_a_client_that_leaves_ends_its_watch(etcd: ThrowawayEtcd) -> None:
    async with serving(etcd) as (rest, address):

        def open_and_leave() -> None:
            host, _, port = address.rpartition(":")
            with socket.create_connection((host, int(port)), LIMIT_SECONDS) as client:
                client.sendall(f"GET {PODS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                assert client.recv(12) == b"HTTP/1.1 200"

        await anyio.to_thread.run_sync(open_and_leave)
        await eventually(lambda: not any(rest.metrics._watches.values()))


async def test_what_is_too_large_is_refused() -> None:
    rest = await in_memory()
    reply = await rest.request("POST", PODS, None, b"x" * (3 * 1024 * 1024 + 1))
    assert (reply.code, reply.document["reason"]) == (413, "RequestEntityTooLarge")
    deep = b"[" * 100_000
    assert (await rest.request("POST", PODS, None, deep)).code == 400
    headers = {"content-type": "application/yaml"}
    assert (await rest.request("POST", PODS, None, deep, headers)).code == 400
    bomb = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
        b"%c: &%c [%s]\n" % (98 + n, 98 + n, b",".join([b"*%c" % (97 + n)] * 9)) for n in range(9)
    )
    assert (await rest.request("POST", PODS, None, bomb, headers)).code == 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "spec", "name", "containers", "$patch", "labels", "op", "path", "data"]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
TYPES = ["json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "json", "yaml"]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(document=JSON, cut=st.integers(0, 40), form=st.sampled_from(TYPES))
def test_nonsense_is_the_clients_fault(document: Any, cut: int, form: str) -> None:
    async def play() -> None:
        rest = await in_memory()
        assert (await rest.json("POST", PODS, POD)).code == 201
        body = json.dumps(document).encode()
        body = body[: len(body) - cut] if cut < len(body) else body
        headers = {"content-type": f"application/{form}", "accept": "application/json"}
        method, path = ("PATCH", f"{PODS}/p") if "patch" in form else ("POST", PODS)
        reply = await rest.request(method, path, None, body, headers)
        assert reply.code < 500 or form.startswith("strategic"), (body, reply.body)
        # Upstream answers directives that make no sense with 500 and their text.
        assert b"Internal error" not in reply.body, (body, reply.body)
        status = await rest.request("DELETE", f"{PODS}/nope", None, body, headers)
        assert status.code < 500, (body, status.body)

    anyio.run(play)


@settings(max_examples=150, deadline=None)
@given(body=st.binary(max_size=60), magic=st.booleans())
def test_broken_protobuf_is_the_clients_fault(body: bytes, magic: bool) -> None:
    async def play() -> None:
        rest = await in_memory()
        data = envelope.wrap(kinds.POD, body) if magic else body
        reply = await rest.request("POST", PODS, None, data, {"content-type": PROTOBUF})
        assert 400 <= reply.code < 500, (data, reply.body)

    anyio.run(play)


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", Media()),
        ("*/*", Media()),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Media(shown_as="Table")),
        ("application/json;as=Table;v=v2;g=meta.k8s.io, application/json", Media()),
        (f"{PROTOBUF};q=0.1,application/json", Media()),
        (f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io", None),
        ("text/html", None),
    ],
)
def test_accept_headers(accept: str, media: Media | None) -> None:
    assert negotiate(accept, shown=frozenset({"Table"})) == media


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/api/v1/pods", ("pods", "", "", "")),
        ("/api/v1/namespaces/n/pods/p/status", ("pods", "n", "p", "status")),
        ("/api/v1/namespaces/n", ("namespaces", "", "n", "")),
        ("/api/v1/namespaces/n/finalize", ("namespaces", "", "n", "finalize")),
        ("/apis/apps/v1/namespaces/n/replicasets/r/scale", ("replicasets", "n", "r", "scale")),
        ("/api/v1/watch/namespaces/n/pods/p", ("pods", "n", "p", "")),
        ("/api/v1/namespaces/n/nodes/x", ("nodes", "n", "x", "")),
        ("/api/v1/pods/a/b/c/d", ("pods", "", "a", "b")),
        ("/api/v1//pods", None),
        ("/healthz", None),
        ("/api/v1", None),
    ],
)
def test_paths(path: str, place: tuple[str, ...] | None) -> None:
    target = parse(path)
    found = target and (target.resource, target.namespace, target.name, target.subresource)
    assert found == place


def test_a_kubeconfig_remembers_the_port(tmp_path: Path) -> None:
    assert kubeconfig.last_port(tmp_path) == 0
    kubeconfig.write_all(tmp_path, "http://127.0.0.1:4321", None, None)
    assert kubeconfig.last_port(tmp_path) == 4321
    assert (tmp_path / "kubeconfig").stat().st_mode & 0o777 == 0o600
    first = rest_server.listen("127.0.0.1:0")
    port = int(address_of(first).rpartition(":")[2])
    second = rest_server.listen("127.0.0.1:0", preferred_port=port)
    assert address_of(second) != address_of(first)
    first.close()
    second.close()


@pytest.mark.parametrize("text", ["", "abc", "1.5", "99999999999999999999", "9" * 5000])
async def test_invalid_numbers(etcd: ThrowawayEtcd, text: str) -> None:
    async with running(etcd) as bench:
        rest = await started(bench)
        reply = await rest.json("GET", PODS, None, {"limit": text})
        assert (reply.code, reply.document["reason"]) == (400, "BadRequest")
        assert reply.document["message"].startswith(f'strconv.ParseInt: parsing "{text}": ')


async def test_a_server_that_stops_ends_its_watches_without_an_error(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        rest = await started(bench)
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                await eventually(lambda: bench.cache.watchers)
                bench.cache.end_watches(errors.service_unavailable("stopping"))

            group.start_soon(stop)
            reply = await rest.json("GET", PODS, None, {"watch": "1"})
        assert (reply.code, reply.body) == (200, b"")


async def test_a_table_of_many_rows(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        rest = await started(bench)
        for number in range(60):
            made = await rest.json("POST", PODS, {**POD, "metadata": {"name": f"p{number:02}"}})
            assert made.code == 201
        accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
        reply = await rest.json("GET", PODS, None, {"includeObject": "None"}, accept=accept)
        assert len(reply.pieces) > 2
        table = reply.document
        assert [row["cells"][0] for row in table["rows"]] == [f"p{number:02}" for number in range(60)]
        assert table["rows"][0]["object"] is None
        pretty = await rest.json("GET", PODS, None, {"includeObject": "None", "pretty": "1"}, accept=accept)
        assert pretty.document == table
        empty = await rest.json("GET", PODS, None, {"labelSelector": "none=1"}, accept=accept)
        assert empty.document["rows"] == []
        wrong = await rest.json("GET", PODS, None, {"includeObject": "All"}, accept=accept)
        assert (wrong.code, wrong.document["message"]) == (400, 'unrecognized includeObject value: "All"')


async def test_services_lie_where_upstream_puts_them(etcd: ThrowawayEtcd) -> None:
    async with running(etcd) as bench:
        rest = await started(bench)
        service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}
        path = "/api/v1/namespaces/default/services"
        made = await rest.json("POST", path, service)
        assert made.code == 201, made.body
        assert await bench.storage.get("/registry/services/specs/default/s") is not None
        # Endpoints are another kind, which lies beside them.
        await bench.storage.create("/registry/services/endpoints/default/s", b"k8s\x00")
        found = (await rest.json("GET", path)).document
        assert [item["metadata"]["name"] for item in found["items"]] == ["s"]
        assert (await rest.json("DELETE", f"{path}/s")).document["kind"] == "Service"
        assert (await rest.json("GET", "/api/v1/services")).document["items"] == []
