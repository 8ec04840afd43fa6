"""The volume plugins: many nodes at once as one by one, and the points that golden cases do not reach."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings

from nominee.explain.cluster import ObjectLister
from nominee.machinery.api import kinds
from nominee.scheduler.framework.interface import Status
from nominee.scheduler.framework.scheduling.algorithm import find_feasible
from nominee.scheduler.framework.scheduling.diagnosis import FitError
from nominee.scheduler.framework.types import NodeInfo
from tests.scheduler.golden import World, build_world, read_object
from tests.scheduler.volume_clusters import DRIVER, volume_clusters

VOLUME_PLUGINS = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")


@settings(max_examples=150, deadline=None)
@given(objects=volume_clusters())
def test_columns_agree_with_nodes(objects: list[dict[str, Any]]) -> None:
    world = build_world(objects)
    framework, snapshot, state = world.framework, world.snapshot, world.state
    pod = world.pods["default/pending"]
    _, status, _ = framework.run_pre_filter_plugins(state, pod, snapshot)
    if status is not None:
        assert status.is_rejected, status
        return
    rows = np.arange(len(snapshot), dtype=np.intp)
    for plugin in framework.filter_plugins:
        if plugin.name not in VOLUME_PLUGINS or plugin.name in state.skip_filter_plugins:
            continue
        one_by_one = [plugin.filter(state, pod, node) for node in snapshot.nodes]
        mask = plugin.filter_all(state, pod, snapshot, rows)
        passed = np.ones(len(rows), dtype=np.bool_) if mask is None else mask
        assert passed.tolist() == [each is None for each in one_by_one], plugin.name
        rejected = rows[~passed]
        if len(rejected):
            distinct, index = plugin.explain_all(state, pod, snapshot, rejected)
            wanted = [each for each in one_by_one if each is not None]
            assert [distinct[i] for i in index.tolist()] == wanted, plugin.name


def node(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def pod(name: str, *volumes: dict[str, Any], on: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [{"name": "c"}],
        "volumes": [{"name": f"v{i}", **volume} for i, volume in enumerate(volumes)],
    }
    if on:
        spec["nodeName"] = on
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def csi_node(name: str, limit: int, driver: str = DRIVER) -> dict[str, Any]:
    drivers = [{"name": driver, "nodeID": name, "allocatable": {"count": limit}}]
    spec = {"drivers": drivers}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": spec,
    }


def waiting_claim(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "2Gi"}},
            "storageClassName": "fast",
        },
    }


FAST = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": DRIVER,
    "volumeBindingMode": "WaitForFirstConsumer",
}


def claim_of(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


def verdict(world: World) -> tuple[list[str], dict[str, Status]]:
    """Return the nodes where `default/pending` fits; if it fits nowhere, why not."""
    pending = world.pods["default/pending"]
    try:
        search, _ = find_feasible(world.framework, world.state, pending, world.snapshot)
    except FitError as error:
        statuses = error.diagnosis.statuses
        return [], {name: statuses.get(name) for name in statuses.names()}
    return sorted(world.snapshot.nodes[row].name for row in search.rows.tolist()), {}


def test_a_volume_attached_without_a_pod_counts() -> None:
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "old"},
        "spec": {"csi": {"driver": DRIVER, "volumeHandle": "h"}},
    }
    spec = {"attacher": DRIVER, "nodeName": "n0", "source": {"persistentVolumeName": "old"}}
    attachment = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": "at"},
        "spec": spec,
        "status": {},
    }
    cluster = [
        node("n0"),
        csi_node("n0", 1),
        FAST,
        waiting_claim("c"),
        pod("pending", claim_of("c")),
        volume,
    ]
    assert verdict(build_world(cluster))[0] == ["n0"]
    feasible, why = verdict(build_world([*cluster, attachment]))
    assert feasible == []
    assert why["n0"].reasons == ("node(s) exceed max volume count",)


def test_one_volume_of_two_pods_counts_once() -> None:
    cluster = [
        node("n0"),
        csi_node("n0", 1),
        FAST,
        waiting_claim("c"),
        pod("first", claim_of("c"), on="n0"),
        pod("pending", claim_of("c")),
    ]
    assert verdict(build_world(cluster))[0] == ["n0"]


def test_an_in_tree_disk_counts_for_the_driver_that_took_over() -> None:
    cluster = [
        node("n0"),
        csi_node("n0", 1, "pd.csi.storage.gke.io"),
        pod("first", {"gcePersistentDisk": {"pdName": "a", "readOnly": True}}, on="n0"),
        pod("pending", {"gcePersistentDisk": {"pdName": "b", "readOnly": True}}),
    ]
    _, why = verdict(build_world(cluster))
    assert why["n0"].plugin == "NodeVolumeLimits"
    cluster[-1] = pod("pending", {"gcePersistentDisk": {"pdName": "a", "readOnly": True}})
    assert verdict(build_world(cluster))[0] == ["n0"]


def test_provisioning_needs_capacity_where_the_driver_publishes_it() -> None:
    def room(zone: str, capacity: str) -> dict[str, Any]:
        return {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "metadata": {"name": f"room-{zone}", "namespace": "kube-system"},
            "storageClassName": "fast",
            "nodeTopology": {"matchLabels": {"zone": zone}},
            "capacity": capacity,
        }

    driver = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": DRIVER},
        "spec": {"storageCapacity": True},
    }
    cluster = [
        node("n0", zone="a"),
        node("n1", zone="b"),
        FAST,
        waiting_claim("c"),
        pod("pending", claim_of("c")),
        room("a", "1Gi"),
        room("b", "2Gi"),
    ]
    assert verdict(build_world(cluster))[0] == ["n0", "n1"]
    assert verdict(build_world([*cluster, driver]))[0] == ["n1"]
    _, why = verdict(build_world([*cluster[:-1], driver]))
    assert {status.reasons for status in why.values()} == {("node(s) did not have enough free storage",)}


def test_a_changed_limit_is_seen() -> None:
    cluster = [
        node("n0"),
        csi_node("n0", 0),
        FAST,
        waiting_claim("c"),
        pod("pending", claim_of("c")),
    ]
    world = build_world(cluster)
    assert verdict(world)[0] == []
    grown = ObjectLister([read_object(csi_node("n0", 1))])
    grown.changes = 1
    listers: Any = world.framework.environment.listers
    listers[kinds.CSI_NODE] = grown
    assert verdict(world)[0] == ["n0"]
    world.snapshot.put(NodeInfo("n1", world.snapshot.nodes[0].node))
    assert verdict(world)[0] == ["n0", "n1"]


def test_a_driver_that_must_be_on_the_node_is_looked_for_with_its_gate() -> None:
    def driver(required: bool) -> dict[str, Any]:
        return {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": DRIVER},
            "spec": {"preventPodSchedulingIfMissing": required},
        }

    cluster = [
        node("n0"),
        node("n1"),
        csi_node("n1", 5),
        FAST,
        waiting_claim("c"),
        pod("pending", claim_of("c")),
    ]
    gates = {"VolumeLimitScaling": True}
    assert verdict(build_world([*cluster, driver(True)]))[0] == ["n0", "n1"]
    assert verdict(build_world([*cluster, driver(False)], gates=gates))[0] == ["n0", "n1"]
    assert verdict(build_world([*cluster, driver(True)], gates=gates))[0] == ["n1"]
    alone = [each for each in cluster if each["metadata"]["name"] != "n1"]
    _, why = verdict(build_world([*alone, driver(True)], gates=gates))
    assert why["n0"].reasons == (f"{DRIVER} CSI driver is not installed on the node",)
