"""Explanations of pods with claims on devices, from manifests alone."""

from __future__ import annotations

import random
from typing import Any

import pytest

from nominee.explain import what_if
from nominee.explain.cluster import Cluster, build_cluster
from nominee.machinery.features.gates import Gates, Version
from nominee.machinery.runtime.clock import FakeClock
from nominee.machinery.wire import codec
from nominee.scheduler.explanation.verdict import Rejection, explain
from tests.scheduler.builders import node, pod
from tests.support.devices import (
    allocation,
    claim,
    device,
    device_class,
    resource_slice,
    template,
    using,
)


def document(obj: Any, kind: str, version: str) -> dict[str, Any]:
    found = codec.to_json(obj)
    assert isinstance(found, dict)
    return {**found, "kind": kind, "apiVersion": version}


def cluster_with(*, template_too: bool) -> Cluster:
    group = "resource.k8s.io/v1"
    first, second = using(pod("a").pod, claim="mine"), using(pod("b").pod, template="one-gpu")
    documents = [
        *(document(node(name), "Node", "v1") for name in ("n1", "n2")),
        *(document(each, "Pod", "v1") for each in (first, second)),
        document(device_class("gpu"), "DeviceClass", group),
        document(resource_slice("s1", device("gpu-0"), node="n1"), "ResourceSlice", group),
        document(claim("mine"), "ResourceClaim", group),
    ]
    if template_too:
        documents.append(document(template("one-gpu"), "ResourceClaimTemplate", group))
    gates = Gates("scheduler", Version(1, 36))
    return build_cluster(documents, gates=gates, clock=FakeClock(), rng=random.Random(1))


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_pod_goes_where_the_devices_are(name: str) -> None:
    found = cluster_with(template_too=True)
    verdict = explain(found.framework, found.snapshot, found.pods[f"default/{name}"])
    assert verdict.feasible == ("n1",)
    assert verdict.rejected["n2"] == Rejection(
        "DynamicResources", ("cannot allocate all claims",), "UnschedulableAndUnresolvable"
    )


def test_without_its_template_a_pod_is_not_tried() -> None:
    found = cluster_with(template_too=False)
    verdict = explain(found.framework, found.snapshot, found.pods["default/b"])
    assert verdict.gate is not None
    assert verdict.gate.reasons == ('pod "default/b": ResourceClaim not created yet',)
    assert any(waker.startswith("ResourceClaim/Add|Update") for waker in verdict.wakers)


GROUP = "resource.k8s.io/v1"


def one_gpu_taken(*, owned: bool) -> list[dict[str, Any]]:
    """n1's only device is pod old's; pod new wants one."""
    users = [{"resource": "pods", "name": "old", "uid": "uid-old"}]
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "old", "uid": "uid-old", "controller": True}]
    status = {"allocation": allocation(("s1", "gpu-0"), node="n1"), "reservedFor": users}
    old = using(pod("old", uid="uid-old", on="n1").pod, claim="taken")
    more: dict[str, Any] = {"ownerReferences": owners} if owned else {}
    return [
        document(node("n1"), "Node", "v1"),
        document(old, "Pod", "v1"),
        document(using(pod("new").pod, claim="mine"), "Pod", "v1"),
        document(device_class("gpu"), "DeviceClass", GROUP),
        document(resource_slice("s1", device("gpu-0"), node="n1"), "ResourceSlice", GROUP),
        document(claim("taken", status=status, **more), "ResourceClaim", GROUP),
        document(claim("mine"), "ResourceClaim", GROUP),
    ]


@pytest.mark.parametrize(
    ("change", "feasible"),
    [
        ("node n1 +1cpu", ()),
        ("remove pod default/old", ("n1",)),
        ("remove pod default/new", None),
        ("add node n2 like n1", ("n2",)),
    ],
)
@pytest.mark.parametrize("owned", [False, True])
def test_what_if_there_were_other_nodes_and_pods(
    change: str, feasible: tuple[str, ...] | None, owned: bool
) -> None:
    before = one_gpu_taken(owned=owned)
    documents = what_if.change(before, [change])
    assert before == one_gpu_taken(owned=owned)
    gates = Gates("scheduler", Version(1, 36))
    found = build_cluster(documents, gates=gates, clock=FakeClock(), rng=random.Random(1))
    if feasible is None:
        assert "default/new" not in found.pods
        return
    verdict = explain(found.framework, found.snapshot, found.pods["default/new"])
    assert verdict.feasible == feasible
