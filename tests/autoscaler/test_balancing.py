"""Which node groups are similar, and how new nodes are distributed over them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nominee.autoscaler.planning.objects.observation import NodeGroup
from nominee.autoscaler.planning.scale_up.balancing import balance_between_groups, is_similar
from nominee.machinery.api.pb import core
from nominee.scheduler.framework.types import NodeInfo, PodInfo

_AMOUNTS = {"cpu": "4", "memory": "16Gi", "pods": "110"}


def _node(
    capacity: Mapping[str, str] = {}, allocatable: Mapping[str, str] = {}, used: Mapping[str, str] = {}
) -> NodeInfo:
    node = core.Node()
    for name, amount in {**_AMOUNTS, **capacity}.items():
        node.status.capacity[name].string = amount
        node.status.allocatable[name].string = allocatable.get(name, amount)
    info = NodeInfo("n", node)
    pod = core.Pod()
    requests = pod.spec.containers.add(name="c").resources.requests
    for name, amount in used.items():
        requests[name].string = amount
    info.add_pod(PodInfo(pod))
    return info


@pytest.mark.parametrize(
    ("other", "similar"),
    [
        pytest.param(_node(), True, id="equal"),
        pytest.param(_node({"memory": "16140Mi"}), True, id="1.5 % less memory"),
        pytest.param(_node({"memory": "16130Mi"}), False, id="more than 1.5 % less memory"),
        pytest.param(_node({"pods": "109"}), False, id="fewer pods"),
        pytest.param(_node({"cpu": "4000m"}), True, id="the same amount"),
        pytest.param(_node({"nvidia.com/gpu": "1"}), False, id="devices"),
        pytest.param(_node({}, {"cpu": "3800m"}), True, id="5 % less is allocatable"),
        pytest.param(_node({}, {"cpu": "3799m"}), False, id="more than 5 % less is allocatable"),
        pytest.param(_node({}, {}, {"cpu": "200m"}), True, id="5 % less is free"),
        pytest.param(_node({}, {}, {"cpu": "201m"}), False, id="more than 5 % less is free"),
    ],
)
def test_all_resources_decide_whether_nodes_are_similar(other: NodeInfo, similar: bool) -> None:
    assert is_similar(_node(), other) is similar
    assert is_similar(other, _node()) is similar


@pytest.mark.parametrize(
    ("sizes", "count", "expected"),
    [
        pytest.param({"a": (0, 3), "b": (0, 3)}, 3, ["a 0->2", "b 0->1"], id="equal"),
        pytest.param(
            {"a": (2, 5), "b": (0, 5)}, 3, ["b 0->3"], id="the smaller first, also when both are equal"
        ),
        pytest.param({"a": (2, 5), "b": (0, 5)}, 4, ["b 0->3", "a 2->3"], id="then the other"),
        pytest.param({"a": (1, 9), "b": (0, 2), "c": (3, 9)}, 4, ["b 0->2", "a 1->3"], id="one becomes full"),
        pytest.param({"a": (1, 2), "b": (0, 2)}, 9, ["b 0->2", "a 1->2"], id="all become full"),
        pytest.param({"a": (3, 3), "b": (4, 5)}, 2, ["b 4->5"], id="one was full"),
    ],
)
def test_new_nodes_go_to_the_smallest_groups(
    sizes: Mapping[str, tuple[int, int]], count: int, expected: list[str]
) -> None:
    groups = [NodeGroup(id=name, min=0, max=most, target=size) for name, (size, most) in sizes.items()]
    found = balance_between_groups(groups, count)
    assert [f"{each.group.id} {each.group.target}->{each.new_size}" for each in found] == expected
