"""Explanations of pods with claims on devices, from manifests alone."""

from __future__ import annotations

import random
from typing import Any

import pytest

from machinery.clock import FakeClock
from machinery.versions import Gates, Version
from machinery.wire import codec
from nominee.explain.world import World, build_world
from scheduler.explanation.verdict import explain
from tests.scheduler.builders import node, pod
from tests.support.devices import claim, device, device_class, resource_slice, template, using


def document(obj: Any, kind: str, version: str) -> dict[str, Any]:
    found = codec.to_json(obj)
    assert isinstance(found, dict)
    return {**found, "kind": kind, "apiVersion": version}


def world(*, template_too: bool) -> World:
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
    return build_world(documents, gates=gates, clock=FakeClock(), rng=random.Random(1), admit=True)


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_pod_goes_where_the_devices_are(name: str) -> None:
    found = world(template_too=True)
    verdict = explain(found.framework, found.snapshot, found.pods[f"default/{name}"])
    assert verdict.feasible == ("n1",)
    assert verdict.rejected["n2"].document() == {
        "plugin": "DynamicResources",
        "reasons": ["cannot allocate all claims"],
        "code": "UnschedulableAndUnresolvable",
    }


def test_without_its_template_a_pod_is_not_tried() -> None:
    found = world(template_too=False)
    verdict = explain(found.framework, found.snapshot, found.pods["default/b"])
    assert verdict.gate is not None
    assert verdict.gate.reasons == ('pod "default/b": ResourceClaim not created yet',)
    assert any(waker.startswith("ResourceClaim/Add|Update") for waker in verdict.wakers)
