"""The workloads of the benchmark: each runs on real processes, and a wrong placement has no figure."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from nominee.commands.measuring.bench import scheduling
from nominee.lab.bench.load.workloads import CHURN, INIT, MEASURED, WORKLOADS
from nominee.lab.bench.report import reference_lines
from nominee.lab.bench.verification import Placed, placed, problems
from tests.nominee.test_cli import nominee


def test_the_option_offers_every_workload() -> None:
    [option] = [parameter for parameter in scheduling.params if parameter.name == "workload"]
    assert isinstance(option.type, click.Choice)
    assert set(option.type.choices) == set(WORKLOADS)


@pytest.mark.parametrize(("workload", "nodes"), [("SchedulingBasic", 5000), ("PreemptionBasic", 1000)])
def test_the_references_are_those_of_the_page(workload: str, nodes: int) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| {workload} \| {nodes:,} \|[a-z ]*\| (.*?) \|", page, re.MULTILINE)
    assert row is not None
    figures = [float(each) for each in re.findall(r"\d+", row[1])]
    (reference,) = (pair for size, pair in WORKLOADS[workload].reference.items() if size[0] == nodes)
    assert reference == (min(figures), max(figures))


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        ({"lowest": 24.0, "highest": 35.0}, ["real at this size on two cores: 24 to 35 pods/s"]),
        ({"lowest": 387.0, "highest": 387.0}, ["real at this size on two cores: 387 pods/s"]),
        (None, []),
    ],
)
def test_the_reference_is_printed_as_a_range(found: dict[str, float] | None, lines: list[str]) -> None:
    assert list(reference_lines({"real": found})) == lines


def of(series: str, *nodes: str) -> list[Placed]:
    return [placed(f"{series}-{index}", node) for index, node in enumerate(nodes)]


@pytest.mark.parametrize(
    ("workload", "init_pods", "pods", "found", "wanted"),
    [
        ("SchedulingBasic", 1, 2, [*of(INIT, "node-0"), *of(MEASURED, "node-0", "node-1")], ""),
        (
            "SchedulingBasic", 0, 2, of(MEASURED, "node-0", ""),
            "1 pods have no node; 1 of 2 measured pods are bound",
        ),
        ("SchedulingBasic", 0, 2, of(MEASURED, "node-0"), "1 of 2 measured pods are bound"),
        ("SchedulingBasic", 1, 0, [], "0 of 1 initial pods are bound"),
        ("SchedulingBasic", 0, 41, of(MEASURED, *["node-0"] * 41), "node-0 of 4000m cpu has pods of 4100m"),
        ("Unschedulable", 0, 1, [*of(MEASURED, "node-0"), *of(CHURN, "", "")], ""),
        ("Unschedulable", 0, 0, of(CHURN, "node-0"), "1 pods are bound that fit on no node"),
        ("PreemptionBasic", 4, 1, [*of(INIT, "node-0"), *of(MEASURED, "node-0")], ""),
        (
            "PreemptionBasic", 4, 1, [*of(INIT, "node-0", "node-0"), *of(MEASURED, "node-0")],
            "node-0 of 4000m cpu has pods of 4800m",
        ),
        ("SchedulingPodAntiAffinity", 1, 1, [*of(INIT, "node-0"), *of(MEASURED, "node-1")], ""),
        (
            "SchedulingPodAntiAffinity", 1, 1, [*of(INIT, "node-0"), *of(MEASURED, "node-0")],
            "node-0 has 2 pods that must not share a node",
        ),
        ("TopologySpreading", 0, 5, of(MEASURED, *["node-3"] * 5), ""),
        (
            "TopologySpreading", 0, 6, of(MEASURED, *["node-3"] * 6),
            "the zones have {'moon-1': 6, 'moon-2': 0, 'moon-3': 0}",
        ),
    ],
)  # fmt: skip
def test_placements_are_verified(
    workload: str, init_pods: int, pods: int, found: list[Placed], wanted: str
) -> None:
    assert "; ".join(problems(WORKLOADS[workload], init_pods, pods, found)) == wanted


@pytest.mark.parametrize(
    ("workload", "size", "wanted"),
    [
        ("SchedulingBasic", (2, 40, 40), ""),
        ("SchedulingBasic", (2, 40, 41), "--pods: 2 nodes have room for 80 pods; take more --nodes"),
        ("PreemptionBasic", (2, 8, 2), ""),
        ("PreemptionBasic", (2, 9, 1), "--init-pods: 2 nodes have room for 8 pods; take more --nodes"),
        ("PreemptionBasic", (2, 8, 3), "--pods: 2 nodes have room for 2 pods; take more --nodes"),
    ],
)
def test_what_has_no_room_is_refused(workload: str, size: tuple[int, int, int], wanted: str) -> None:
    assert WORKLOADS[workload].too_many(*size) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_runs(workload: str) -> None:
    answer = nominee(
        *("bench", "scheduling", "--workload", workload, "--nodes", "30", "-o", "json"),
        *("--init-pods", "120" if workload == "PreemptionBasic" else "10", "--pods", "15"),
    )
    assert answer.returncode == 0, answer.stderr
    report = json.loads(answer.stdout)
    assert report["settings"]["workload"] == workload
    assert report["pods"]["bound"] == 15
    # Three victims each; more where a preemptor had to look for another node.
    assert (report["pods"]["evicted"] >= 45) == (workload == "PreemptionBasic")
    assert (report["pods"]["unschedulable"] > 0) == (workload == "Unschedulable")
    if workload == "DelayedBinding":
        assert report["throughput"]["seconds"] > 1


@pytest.mark.slow
def test_several_api_servers() -> None:
    answer = nominee(
        *("bench", "scheduling", "--nodes", "30", "--init-pods", "10", "--pods", "60"),
        *("--apiservers", "2", "-o", "json"),
    )
    assert answer.returncode == 0, answer.stderr
    report = json.loads(answer.stdout)
    assert report["pods"]["bound"] == 60
    spent = report["cpuMillisecondsPerPod"]
    assert spent["apiserver-0"] > 0  # bindings and events
    assert spent["apiserver-1"] > 0  # creations
