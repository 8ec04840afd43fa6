"""Random small clusters with volumes of every sort, as manifests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

DRIVER, MIGRATED, IN_TREE = "csi.example.com", "ebs.csi.aws.com", "kubernetes.io/aws-ebs"
NODES = ("n0", "n1", "n2", "n3")
_ZONES = ("a", "b", "")
_CLAIMS = ("c0", "c1", "c2", "c3")


@st.composite
def _labels(draw: st.DrawFn, values: tuple[str, ...]) -> dict[str, str]:
    keys = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
    return {key: draw(st.sampled_from(values)) for key in keys if draw(st.booleans())}


@st.composite
def _inline(draw: st.DrawFn) -> dict[str, Any]:
    read_only = draw(st.booleans())
    name = draw(st.sampled_from(("d0", "d1")))
    monitors = draw(st.sampled_from((["m0"], ["m1"], ["m0", "m1"])))
    return draw(
        st.sampled_from(
            (
                {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}},
                {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}},
                {"iscsi": {"targetPortal": "p", "iqn": name, "lun": 0, "readOnly": read_only}},
                {"rbd": {"monitors": monitors, "image": name, "pool": "rbd", "readOnly": read_only}},
                {"emptyDir": {}},
            )
        )
    )


@st.composite
def _pod(draw: st.DrawFn, name: str, node: str) -> dict[str, Any]:
    volumes = [
        {"name": f"claim-{claim}", "persistentVolumeClaim": {"claimName": claim}}
        for claim in draw(st.lists(st.sampled_from(_CLAIMS), max_size=2, unique=True))
    ]
    volumes += [{"name": f"inline-{i}", **draw(_inline())} for i in range(draw(st.integers(0, 1)))]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": draw(st.sampled_from(("default", "other"))) if node else "default",
            "uid": f"uid-{name}",
        },
        "spec": {"containers": [{"name": "c"}], "volumes": volumes, **({"nodeName": node} if node else {})},
    }


@st.composite
def _volume(draw: st.DrawFn, name: str, claim: str) -> dict[str, Any]:
    source: dict[str, Any] = draw(
        st.sampled_from(
            (
                {"csi": {"driver": DRIVER, "volumeHandle": f"h-{name}"}},
                {"awsElasticBlockStore": {"volumeID": name}},
                {"hostPath": {"path": "/x"}},
            )
        )
    )
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": draw(_labels(("a", "b", "a__b", "a__")))},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "default", "name": claim},
            **source,
        },
    }


@st.composite
def volume_clusters(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Objects of a cluster, a pending pod `default/pending` among them."""
    objects: list[dict[str, Any]] = []
    for node in NODES[: draw(st.integers(1, 4))]:
        objects.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": node, "labels": draw(_labels(_ZONES))},
                "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
            }
        )
        limits = [
            {"name": driver, "nodeID": node, "allocatable": {"count": draw(st.integers(0, 2))}}
            for driver in (DRIVER, MIGRATED)
            if draw(st.booleans())
        ]
        if draw(st.booleans()):
            csi_node = {"metadata": {"name": node}, "spec": {"drivers": limits}}
            objects.append({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", **csi_node})
    objects += [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": provisioner},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        for provisioner in (DRIVER, IN_TREE)
    ]
    objects += draw(_storage())
    for claim in _CLAIMS:
        bound = draw(st.booleans())
        mode = draw(st.sampled_from(("ReadWriteOnce", "ReadWriteOncePod")))
        objects.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": claim,
                    "namespace": "default",
                    "annotations": {"pv.kubernetes.io/bind-completed": "yes"} if bound else {},
                },
                "spec": {
                    "accessModes": [mode],
                    "resources": {"requests": {"storage": "1Gi"}},
                    "storageClassName": draw(st.sampled_from((DRIVER, IN_TREE))),
                    **({"volumeName": f"v-{claim}"} if bound else {}),
                },
            }
        )
        if bound:
            objects.append(draw(_volume(f"v-{claim}", claim)))
    for index in range(draw(st.integers(0, 4))):
        objects.append(draw(_pod(f"p{index}", draw(st.sampled_from(NODES)))))
    objects.append(draw(_pod("pending", "")))
    return objects


@st.composite
def _storage(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A driver that publishes its storage capacity, and attachments."""
    found: list[dict[str, Any]] = []
    if draw(st.booleans()):
        driver = {"metadata": {"name": DRIVER}, "spec": {"storageCapacity": draw(st.booleans())}}
        found.append({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", **driver})
    found += [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "metadata": {"name": f"room-{zone}", "namespace": "kube-system"},
            "storageClassName": DRIVER,
            "nodeTopology": {"matchLabels": {"topology.kubernetes.io/zone": zone}},
            "capacity": draw(st.sampled_from(("512Mi", "4Gi"))),
        }
        for zone in ("a", "b")
        if draw(st.booleans())
    ]
    for claim in draw(st.lists(st.sampled_from(_CLAIMS), max_size=2, unique=True)):
        spec = {
            "attacher": DRIVER,
            "nodeName": draw(st.sampled_from(NODES)),
            "source": {"persistentVolumeName": f"v-{claim}"},
        }
        metadata = {"name": f"at-{claim}"}
        found.append(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "VolumeAttachment",
                "metadata": metadata,
                "spec": spec,
                "status": {},
            }
        )
    return found
