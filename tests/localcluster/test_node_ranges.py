"""Which nodes kubelets carry, and which they carried before."""

from __future__ import annotations

from pathlib import Path

import pytest

from nominee.localcluster.supervisor.model.node_ranges import NodeRange, of_kubelet, without
from nominee.localcluster.supervisor.model.spec import ClusterSpec, ProcessSpec


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ((), NodeRange("node-", 0, 1)),
        (("--nodes", "3", "--first-node=2", "--nodes=5"), NodeRange("node-", 2, 5)),
        (("--node-name-prefix", "big-", "--nodes=0"), NodeRange("big-", 0, 0)),
    ],
)
def test_the_nodes_of_a_command_line(argv: tuple[str, ...], expected: NodeRange) -> None:
    assert of_kubelet(argv) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("node-3", True), ("node-9", True), ("node-2", False), ("node-10", False), ("node-03", False)),
        *(("other-3", False), ("node-", False), ("node-x", False), ("3", False), ("node-\u0663", False)),
    ],
)
def test_which_names_are_in_a_range(name: str, expected: bool) -> None:
    assert NodeRange("node-", 3, 7).has(name) is expected


def test_numbers_alone_are_names_where_there_is_no_prefix() -> None:
    assert NodeRange("", 0, 2).has("1")


@pytest.mark.parametrize(
    ("ranges", "others", "expected"),
    [
        ([(0, 10)], [(0, 3)], [(3, 7)]),
        ([(0, 5), (5, 5)], [(0, 2), (2, 1)], [(3, 7)]),
        ([(0, 10)], [(4, 2)], [(0, 4), (6, 4)]),
        ([(0, 3)], [(0, 10)], []),
        ([(0, 3)], [(0, 0)], [(0, 3)]),
    ],
)
def test_what_is_left_of_ranges(
    ranges: list[tuple[int, int]], others: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    def nodes(pairs: list[tuple[int, int]]) -> list[NodeRange]:
        return [NodeRange("node-", *pair) for pair in pairs]

    assert without(nodes(ranges), nodes(others)) == tuple(nodes(expected))


def spec(*components: str, earlier: tuple[NodeRange, ...]) -> ClusterSpec:
    processes = tuple(
        ProcessSpec(
            name=name, component=name, argv=("--nodes", "3") if name == "kubelet" else (), stop_stage=1
        )
        for name in components
    )
    return ClusterSpec(directory=Path("/d"), processes=processes, earlier_nodes=earlier)


def test_surplus_nodes_are_those_that_no_kubelet_carries() -> None:
    earlier = (NodeRange("node-", 0, 10), NodeRange("big-", 0, 1))
    found = spec("apiserver", "kubelet", earlier=earlier)
    assert found.surplus_nodes == (NodeRange("node-", 3, 7), NodeRange("big-", 0, 1))
    assert ClusterSpec.from_json(found.to_json()) == found


@pytest.mark.parametrize("components", [("apiserver",), ("kubelet",)])
def test_no_node_is_surplus_without_kubelets_or_api_server(components: tuple[str, ...]) -> None:
    assert spec(*components, earlier=(NodeRange("node-", 0, 10),)).surplus_nodes == ()
