"""metrics.k8s.io over a source that is known."""

from __future__ import annotations

import random

from nominee.apiserver.cache.reads import Reads
from nominee.apiserver.cache.watch_cache import CacheLimits
from nominee.apiserver.fronts.rest.front import FrontOptions
from nominee.apiserver.kinds.table import fields_of
from nominee.apiserver.objects.usage import UsageSnapshot, Used
from nominee.apiserver.process.bootstrap import bootstrap
from nominee.apiserver.registry.registry import Registry
from nominee.machinery.features.gates import Gates
from nominee.machinery.runtime.clock import SystemClock
from nominee.machinery.wire import envelope
from nominee.pb.k8s.io.metrics.pkg.apis.metrics.v1beta1 import generated_pb2 as metrics
from tests.apiserver.cache.test_watch_cache import Bench, running
from tests.apiserver.rest.asgi import VERSION, Rest, rest_front
from tests.support.etcd import ThrowawayEtcd
from tests.support.patience import PATIENCE_SECONDS

BASE = "/apis/metrics.k8s.io/v1beta1"
NOW = 1_700_000_000.0
AHEAD = NOW + 61.5
"""The time of the kubelet."""


class _Source:
    def __init__(self) -> None:
        self.snapshot = UsageSnapshot(NOW, {"n1": Used(1_500_000_000, 3 << 20, AHEAD)})

    async def usage(self) -> UsageSnapshot:
        return self.snapshot


async def _started(bench: Bench, source: _Source) -> Rest:
    registry = Registry(
        bench.storage,
        bench.cache,
        Reads(bench.storage, bench.cache, fields_of),
        gates=Gates("apiserver", VERSION),
        clock=SystemClock(),
        rng=random.Random(1),
    )
    await bootstrap(registry)
    options = FrontOptions(VERSION, "127.0.0.1:1", usage=source)
    return Rest(rest_front(registry, SystemClock(), options))


async def test_nodes_and_pods(etcd: ThrowawayEtcd) -> None:
    source = _Source()
    async with running(etcd, CacheLimits(wait_seconds=PATIENCE_SECONDS)) as bench:
        rest = await _started(bench, source)
        for name in ("n1", "n2"):
            labels = {"name": name}
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
            assert (await rest.json("POST", "/api/v1/nodes", node)).code == 201
        container = {"name": "c", "image": "i"}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {"containers": [container]},
        }
        made = (await rest.json("POST", "/api/v1/namespaces/default/pods", pod)).document
        source.snapshot.pods[made["metadata"]["uid"]] = {"c": Used(100_000_000, 1500, AHEAD)}

        # Like metrics-server, it looks for pods and nodes where the watch has brought them.
        await bench.caught_up()
        nodes = (await rest.json("GET", f"{BASE}/nodes")).document
        assert (nodes["kind"], nodes["apiVersion"]) == ("NodeMetricsList", "metrics.k8s.io/v1beta1")
        (node,) = nodes["items"]
        assert node["metadata"]["labels"] == {"name": "n1"}
        assert node.pop("metadata")["creationTimestamp"] == "2023-11-14T22:13:20Z"
        assert node == {
            "timestamp": "2023-11-14T22:14:21Z", "window": "10s", "usage": {"cpu": "1500m", "memory": "3Mi"},
        }  # fmt: skip
        one = await rest.json("GET", f"{BASE}/namespaces/default/pods/p")
        assert (one.document["kind"], one.document["timestamp"]) == ("PodMetrics", "2023-11-14T22:14:21Z")
        assert one.document["containers"] == [{"name": "c", "usage": {"cpu": "100m", "memory": "1500"}}]
        selected = await rest.json("GET", f"{BASE}/pods", query={"labelSelector": "app=x"})
        assert selected.document["items"] == []

        missing = (await rest.json("GET", f"{BASE}/nodes/n2")).document
        assert (missing["code"], missing["message"]) == (404, 'nodemetrics.metrics.k8s.io "n2" not found')
        missing = (await rest.json("GET", f"{BASE}/namespaces/default/pods/q")).document
        assert missing["message"] == 'podmetrics.metrics.k8s.io "default/q" not found'
        assert (await rest.json("POST", f"{BASE}/nodes", {})).code == 405
        assert (await rest.json("GET", f"{BASE}/nodes", query={"watch": "1"})).code == 405
        assert (await rest.json("GET", f"{BASE}/pots")).code == 404

        form = "application/vnd.kubernetes.protobuf"
        reply = await rest.request("GET", f"{BASE}/nodes", None, b"", {"accept": f"{form},application/json"})
        _, kind, raw = envelope.unwrap(reply.body)
        assert (reply.header("content-type"), kind) == (form, "NodeMetricsList")
        assert metrics.NodeMetricsList.FromString(raw).items[0].window.duration == 10_000_000_000
        groups = (await rest.json("GET", "/apis")).document["groups"]
        assert groups[-1]["name"] == "metrics.k8s.io"
