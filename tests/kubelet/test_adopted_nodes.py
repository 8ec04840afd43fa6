"""Nodes of another cluster: which of them a kubelet runs, and what it takes from statuses."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.kubelet.node.adopted_node import AdoptedShare, identity, is_new
from nominee.kubelet.node.node_object import NodeFacts, write_status, write_version
from nominee.kubelet.resources.pod_resources import desired_resources
from nominee.kubelet.runtime.adoption import adopt, allocations
from nominee.machinery.api.objects import ADOPTED
from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Version
from nominee.machinery.wire.codec import from_json, to_json

NOW = 1_700_000_000.0
FACTS = NodeFacts(version=Version(1, 36), declared_features=("A",))


def node(name: str = "a", *, cidr: str = "10.244.3.0/24", mark: str | None = "") -> core.Node:
    annotations = {} if mark is None else {ADOPTED: mark}
    document = {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"podCIDR": cidr, "providerID": "aws:///i-1"},
        "status": {
            "capacity": {"cpu": "8", "example.com/gpu": "2"},
            "allocatable": {"cpu": "7910m", "example.com/gpu": "2"},
            "addresses": [
                {"type": "Hostname", "address": name},
                {"type": "InternalIP", "address": "192.168.1.7"},
            ],
            "nodeInfo": {"kubeletVersion": "v1.34.3-eks", "osImage": "Bottlerocket"},
            "conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}],
        },
    }
    return from_json(core.Node, document)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_marked_node_is_adopted_by_one_kubelet(count: int) -> None:
    nodes = [node(f"n{index}") for index in range(60)] + [node("own", mark=None)]
    shares = [[one.name for one in AdoptedShare(i, count).identities(nodes)] for i in range(count)]
    assert sorted(name for share in shares for name in share) == sorted(f"n{index}" for index in range(60))
    assert all(len(share) > 10 for share in shares)


@pytest.mark.parametrize("text", ["2/2", "-1/2", "a/b", "1", ""])
def test_a_share_that_cannot_be_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid literal|must be below"):
        AdoptedShare.parse(text)


@pytest.mark.parametrize(
    ("cidr", "number"),
    [("10.244.3.0/24", 244 * 256 + 3), ("10.1.7.0/24", 7), ("10.95.255.0/24", 95 * 256 - 1)],
)
def test_new_pods_get_addresses_of_the_node_s_own_range(cidr: str, number: int) -> None:
    found = identity(node(cidr=cidr))
    assert found.number == number
    assert found.host_ip == "192.168.1.7"


@pytest.mark.parametrize("cidr", ["", "100.64.0.0/24", "10.244.0.0/20", "10.0.3.0/24", "fd00::/64"])
def test_other_ranges_are_replaced_by_one_of_the_name(cidr: str) -> None:
    assert 32_768 <= identity(node(cidr=cidr)).number < 65_536


def test_only_conditions_of_an_adopted_node_are_written() -> None:
    found = node()
    before = to_json(found.status)
    write_status(found.status, identity(found), FACTS, NOW)
    after: Any = to_json(found.status)
    assert [row["status"] for row in after["conditions"] if row["type"] == "Ready"] == ["True"]
    assert {**after, "conditions": None} == {**before, "conditions": None}


def test_an_upgraded_kubelet_writes_its_version() -> None:
    found = node()
    write_version(found.status, FACTS)
    assert found.status.nodeInfo.kubeletVersion == "v1.36.0"
    assert found.status.nodeInfo.osImage == "Bottlerocket"
    assert list(found.status.declaredFeatures) == ["A"]


def test_a_node_is_new_until_a_kubelet_has_marked_it() -> None:
    assert [is_new(node(mark=mark)) for mark in ("", "1.36", None)] == [True, False, False]


def pod(spec: str, allocated: str, in_force: str, limit: str = "4") -> core.Pod:
    document = {
        "metadata": {"name": "p", "uid": "u"},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": spec}, "limits": {"cpu": limit}}}]
        },
        "status": {
            "phase": "Running",
            "startTime": "2025-01-02T03:04:05Z",
            "podIP": "10.244.3.9",
            "containerStatuses": [
                {
                    "name": "c",
                    "containerID": "containerd://1",
                    "restartCount": 3,
                    "ready": True,
                    "state": {"running": {"startedAt": "2025-01-02T03:04:07Z"}},
                    "allocatedResources": {"cpu": allocated},
                    "resources": {"requests": {"cpu": in_force}, "limits": {"cpu": "2"}},
                }
            ],
        },
    }
    return from_json(core.Pod, document)


@pytest.mark.parametrize(
    ("spec", "allocated", "limits"),
    [
        ("1", "1", "4"),  # nothing to resize: the spec's
        ("3", "1", "2"),  # deferred: the allocated requests, and the limits in force
        ("3", "3000m", "4"),  # allocated, not yet in force
    ],
)
def test_allocations_are_those_of_the_status(spec: str, allocated: str, limits: str) -> None:
    found = pod(spec, allocated, "1")
    taken = allocations(found, desired_resources(found)).of("c")
    assert taken.requests.get("cpu") == ("3" if allocated == "3000m" else allocated)
    assert taken.limits.get("cpu") == limits


def test_containers_run_on_with_their_start_times_and_restarts() -> None:
    found = adopt(pod("1", "1", "1"))
    assert found is not None
    container = found.containers[0]
    assert (container.state, container.restarts, container.id) == ("running", 3, "containerd://1")
    assert found.ip == "10.244.3.9"
    assert container.started == 1_735_787_047.0
