"""The status that a kubelet writes for its node, and the fields of other clients."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from nominee.kubelet.node.node_object import RUNTIME_VERSION, Identity, NodeFacts, new_node, write_status
from nominee.kubelet.options import NodeShape
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Version

NOW = 1_700_000_000.0
GPU, FPGA = "example.com/gpu", "example.com/fpga"
OWN = {"cpu": "4", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}


def _written(status: core.NodeStatus, **shape: str) -> tuple[dict[str, str], dict[str, str]]:
    """Capacity and allocatable once the kubelet has written the status."""
    facts = NodeFacts(version=Version(1, 36), shape=NodeShape(capacity={**OWN, **shape}))
    write_status(status, Identity(name="node-0", number=0), facts, NOW)
    whole = {name: quantity.string for name, quantity in status.capacity.items()}
    return whole, {name: quantity.string for name, quantity in status.allocatable.items()}


def _status(*, capacity: dict[str, str], allocatable: dict[str, str]) -> core.NodeStatus:
    status = core.NodeStatus()
    for name, text in capacity.items():
        status.capacity[name].string = text
    for name, text in allocatable.items():
        status.allocatable[name].string = text
    return status


def test_the_runtime_has_the_version_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["version"] == RUNTIME_VERSION


def test_a_new_node_has_ephemeral_storage() -> None:
    node = new_node(Identity(name="node-0", number=0), NodeFacts(version=Version(1, 36)), NOW)
    assert node.status.capacity["ephemeral-storage"].string == "100Gi"
    assert node.status.allocatable["ephemeral-storage"].string == "100Gi"


@pytest.mark.parametrize(
    ("capacity", "allocatable", "want_capacity", "want_allocatable"),
    [
        pytest.param({**OWN, GPU: "2"}, OWN, {**OWN, GPU: "2"}, {**OWN, GPU: "2"}, id="added"),
        pytest.param({**OWN, GPU: "3"}, {**OWN, GPU: "2"}, {**OWN, GPU: "3"}, {**OWN, GPU: "3"}, id="more"),
        pytest.param(OWN, {**OWN, GPU: "2"}, OWN, OWN, id="taken away"),
        pytest.param({**OWN, "cpu": "64"}, {"cpu": "1"}, OWN, OWN, id="the kubelet's own stay"),
    ],
)
def test_extended_resources_of_other_clients_become_allocatable(
    capacity: dict[str, str],
    allocatable: dict[str, str],
    want_capacity: dict[str, str],
    want_allocatable: dict[str, str],
) -> None:
    status = _status(capacity=capacity, allocatable=allocatable)
    assert _written(status) == (want_capacity, want_allocatable)


def test_an_extended_resource_that_the_kubelet_has_itself_is_not_overwritten() -> None:
    status = _status(capacity={**OWN, FPGA: "9", GPU: "1"}, allocatable=OWN)
    whole, free = _written(status, **{FPGA: "4"})
    assert whole == free == {**OWN, FPGA: "4", GPU: "1"}


def test_a_cloud_node_has_what_its_template_leaves_allocatable() -> None:
    template = core.Node()
    template.status.capacity["cpu"].string, template.status.allocatable["cpu"].string = "4", "3900m"
    template.status.capacity["memory"].string = "8Gi"
    identity = Identity(name="n", number=40_000, template=template)
    status = _status(capacity={GPU: "1"}, allocatable={})
    write_status(status, identity, NodeFacts(version=Version(1, 36)), NOW)
    assert {name: quantity.string for name, quantity in status.allocatable.items()} == {
        "cpu": "3900m", "memory": "8Gi", GPU: "1",
    }  # fmt: skip
