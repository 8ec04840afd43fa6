"""Random small clusters as manifests, for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from nominee.machinery.api.pb import core
from nominee.machinery.wire import codec

ZONES = ("a", "b", "c")
_CPU = st.sampled_from(("0", "100m", "250m", "500m", "1", "2", "4"))
_MEMORY = st.sampled_from(("0", "64Mi", "512Mi", "1Gi", "4Gi", "8Gi"))
_EFFECTS = st.sampled_from(("NoSchedule", "PreferNoSchedule", "NoExecute"))
_TAINT_KEYS = st.sampled_from(("dedicated", "gpu", "node.kubernetes.io/unschedulable"))
_TAINTS = st.lists(
    st.fixed_dictionaries({"key": _TAINT_KEYS, "value": st.sampled_from(("", "x")), "effect": _EFFECTS}),
    max_size=2,
)
_TOLERATIONS = st.lists(
    st.fixed_dictionaries(
        {
            "key": _TAINT_KEYS,
            "operator": st.sampled_from(("Exists", "Equal")),
            "value": st.sampled_from(("", "x")),
            "effect": st.sampled_from(("", "NoSchedule", "PreferNoSchedule", "NoExecute")),
        }
    ),
    max_size=3,
)
_EXPRESSIONS = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {
                "key": st.sampled_from(("zone", "disk", "size")),
                "operator": st.sampled_from(("In", "NotIn")),
                "values": st.lists(st.sampled_from(("a", "b", "ssd", "3")), min_size=1, max_size=2),
            }
        ),
        st.fixed_dictionaries(
            {
                "key": st.sampled_from(("zone", "disk", "size")),
                "operator": st.sampled_from(("Exists", "DoesNotExist")),
            }
        ),
        st.fixed_dictionaries(
            {
                "key": st.just("size"),
                "operator": st.sampled_from(("Gt", "Lt")),
                "values": st.sampled_from((["2"], ["4"], ["x"])),
            }
        ),
    ),
    max_size=2,
)
_FIELDS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.just("metadata.name"),
            "operator": st.sampled_from(("In", "NotIn")),
            "values": st.sampled_from((["n0"], ["n1"], ["none"])),
        }
    ),
    max_size=1,
)
_TERMS = st.lists(
    st.fixed_dictionaries({"matchExpressions": _EXPRESSIONS, "matchFields": _FIELDS}), min_size=1, max_size=2
)


@st.composite
def node_documents(draw: st.DrawFn, name: str) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name}
    for key, values in (("zone", ZONES), ("disk", ("ssd", "hdd")), ("size", ("1", "3", "5", "big"))):
        if draw(st.booleans()):
            labels[key] = draw(st.sampled_from(values))
    if draw(st.booleans()):
        labels["topology.kubernetes.io/zone"] = draw(st.sampled_from(ZONES))
    allocatable = {
        "cpu": draw(_CPU),
        "memory": draw(_MEMORY),
        "pods": draw(st.sampled_from(("0", "2", "110"))),
    }
    if draw(st.booleans()):
        allocatable["example.com/gpu"] = draw(st.sampled_from(("0", "1", "4")))
    images = [
        {"names": [f"img{i}:latest"], "sizeBytes": draw(st.sampled_from((1, 50_000_000, 900_000_000)))}
        for i in range(3)
        if draw(st.booleans())
    ]
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"unschedulable": draw(st.booleans()), "taints": draw(_TAINTS)},
        "status": {"allocatable": allocatable, "images": images},
    }


@st.composite
def pod_documents(draw: st.DrawFn, name: str, node: str = "") -> dict[str, Any]:
    containers = []
    for index in range(draw(st.integers(1, 2))):
        requests = {}
        if draw(st.booleans()):
            requests["cpu"] = draw(_CPU)
        if draw(st.booleans()):
            requests["memory"] = draw(_MEMORY)
        if draw(st.integers(0, 3)) == 0:
            requests["example.com/gpu"] = draw(st.sampled_from(("0", "1", "2")))
        container: dict[str, Any] = {
            "name": f"c{index}",
            "image": draw(st.sampled_from(("img0", "img1:latest", "img2", "other"))),
            "resources": {"requests": requests},
        }
        if draw(st.integers(0, 2)) == 0:
            container["ports"] = [
                {
                    "containerPort": 80,
                    "hostPort": draw(st.sampled_from((80, 8080))),
                    "protocol": draw(st.sampled_from(("TCP", "UDP"))),
                    "hostIP": draw(st.sampled_from(("", "127.0.0.1", "10.0.0.1"))),
                }
            ]
        containers.append(container)
    spec: dict[str, Any] = {
        "containers": containers,
        "priority": draw(st.integers(-1, 3)),
        "tolerations": draw(_TOLERATIONS),
    }
    if node:
        spec["nodeName"] = node
    elif draw(st.integers(0, 9)) == 0:
        spec["nodeName"] = "n1"
    if draw(st.booleans()):
        spec["nodeSelector"] = {"zone": draw(st.sampled_from(ZONES))}
    affinity: dict[str, Any] = {}
    if draw(st.booleans()):
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": draw(_TERMS)}
    if draw(st.booleans()):
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": draw(st.integers(1, 100)), "preference": term} for term in draw(_TERMS)
        ]
    if affinity:
        spec["affinity"] = {"nodeAffinity": affinity}
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": spec}


def read_node(document: dict[str, Any]) -> core.Node:
    return codec.from_json(core.Node, document)


def read_pod(document: dict[str, Any]) -> core.Pod:
    return codec.from_json(core.Pod, document)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[core.Node], list[core.Pod], core.Pod]:
    """Nodes, pods on them, and a pending pod."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 5)))]
    nodes = [read_node(draw(node_documents(name))) for name in names]
    pods = [
        read_pod(draw(pod_documents(f"p{i}", draw(st.sampled_from(names)))))
        for i in range(draw(st.integers(0, 5)))
    ]
    return nodes, pods, read_pod(draw(pod_documents("pending")))
