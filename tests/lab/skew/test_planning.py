"""The cells of a matrix, and the scenario of each."""

from __future__ import annotations

from pathlib import Path

import yaml

from nominee.lab.skew.matrix.model import ComponentWhen, Setting, holds
from nominee.lab.skew.matrix.planning import PlannedCell
from tests.lab.skew.matrices import CLEARING, GATE, PATH, planned


def _spec(planned_cell: PlannedCell) -> dict[str, object]:
    document = yaml.safe_load(planned_cell.text)
    assert isinstance(document, dict)
    spec = document["spec"]
    assert isinstance(spec, dict)
    return spec


def test_every_combination_that_a_cluster_can_have(tmp_path: Path) -> None:
    plan = planned(tmp_path, CLEARING, full=True)
    assert len(plan.cells) == plan.possible == 10
    (reason,) = {left.reason for left in plan.left_out}
    assert f"cannot set feature gate {GATE} to false, feature is PreAlpha" in reason
    assert [left.name.split()[1] for left in plan.left_out] == ["apiserver=1.33"] * 2


def test_pairwise_prefers_supported_versions(tmp_path: Path) -> None:
    plan = planned(tmp_path, CLEARING)
    assert 6 <= len(plan.cells) < plan.possible
    outside = {
        (cell.cell.values["apiserver"], cell.cell.values["scheduler"])
        for cell in plan.cells
        if cell.cell.unsupported
    }
    assert outside == {("1.33", "1.34"), ("1.33", "1.35"), ("1.36", "1.34")}


def test_only_a_part_of_the_cells(tmp_path: Path) -> None:
    names = [cell.cell.name for cell in planned(tmp_path, CLEARING, full=True, only="apiserver=1.33").cells]
    assert names == [
        f"clearing apiserver=1.33 scheduler={v} apiserver gates=default" for v in ("1.34", "1.35")
    ]
    assert len(planned(tmp_path, CLEARING, only="apiserver").cells) == len(planned(tmp_path, CLEARING).cells)
    assert planned(tmp_path, CLEARING, only="apiserver*").cells == ()


def test_the_case_is_chosen_by_the_effective_gate(tmp_path: Path) -> None:
    plan = planned(tmp_path, CLEARING, full=True)
    cases = {
        (cell.cell.values["apiserver"], cell.cell.values["apiserver gates"]): [
            each.case for each in cell.seen
        ]
        for cell in plan.cells
    }
    assert cases == {
        ("1.33", "default"): ["kept"],
        ("1.35", "default"): ["cleared"],
        ("1.35", f"{GATE}=false"): ["kept"],
        ("1.36", "default"): ["cleared"],
        ("1.36", f"{GATE}=false"): ["kept"],
    }


def test_a_cell_is_a_whole_scenario(tmp_path: Path) -> None:
    plan = planned(
        tmp_path, CLEARING, full=True, only=f"apiserver=1.36 scheduler=1.35 apiserver gates={GATE}"
    )
    (cell,) = plan.cells
    spec = _spec(cell)
    assert spec["cluster"] == {
        "without": ["autoscaler"],
        "nodes": 1,
        "components": {
            "apiserver": {"emulatedVersion": "1.36", "featureGates": {GATE: False}},
            "scheduler": {"emulatedVersion": "1.35"},
            "controllers": {"emulatedVersion": "1.36"},
            "kubelet": {"emulatedVersion": "1.36"},
        },
    }
    steps = spec["steps"]
    assert isinstance(steps, list)
    assert [list(step) for step in steps] == [["name", "apply"], ["expect"]]


def test_a_path_restarts_one_component_at_a_time_and_probes_after_each(tmp_path: Path) -> None:
    (cell,) = planned(tmp_path, PATH).cells
    assert [stage.label for stage in cell.cell.stages] == [
        "start", "apiserver 1.35", "scheduler 1.35", "scheduler 1.34", "apiserver 1.34",
    ]  # fmt: skip
    steps = _spec(cell)["steps"]
    assert isinstance(steps, list)
    restarts = [step["restart"] for step in steps if "restart" in step]
    gate = "NominatedNodeNameForExpectation"
    assert restarts == [
        {"component": "apiserver", "emulatedVersion": "1.35"},
        {"component": "scheduler", "emulatedVersion": "1.35", "featureGates": {gate: True}},
        {"component": "scheduler", "emulatedVersion": "1.34", "featureGates": {gate: False}},
        {"component": "apiserver", "emulatedVersion": "1.34"},
    ]
    assert [step["save"] for step in steps if "save" in step] == [
        {f"NODE_{n}": ".metadata.name"} for n in range(5)
    ]
    assert [each.case for each in cell.seen] == ["written", "written", "written", "missing", "missing"]


def test_a_path_outside_the_policy_at_one_stage_is_marked(tmp_path: Path) -> None:
    text = PATH.replace("order: [apiserver, scheduler]", "order: [scheduler, apiserver]")
    (cell,) = planned(tmp_path, text).cells
    assert cell.cell.unsupported == ("scheduler 1.35 is newer than the API server 1.34",)


def test_any_order_is_one_path_for_each(tmp_path: Path) -> None:
    text = PATH.replace(
        "order: [apiserver, scheduler]", "order: [apiserver, scheduler, kubelet]\n      anyOrder: true"
    )
    assert len(planned(tmp_path, text).cells) == 6


def test_a_path_begins_after_a_named_step(tmp_path: Path) -> None:
    text = PATH.replace("    paths:", "    after: [before, after]\n    paths:")
    first, second = planned(tmp_path, text).cells
    names = [
        [step.get("name") for step in steps]
        for steps in (_spec(second)["steps"], _spec(first)["steps"])
        if isinstance(steps, list)
    ]
    assert [each.index("restart apiserver as 1.35") - each.index("before") for each in names] == [3, 4]
    assert names[0][-1] == "after"
    assert names[1][:2] == ["before", "after"]


def test_conditions_hold_for_versions_and_effective_gates() -> None:
    setting = Setting(versions={"apiserver": "1.35", "scheduler": "1.34"})
    assert holds({"apiserver": ComponentWhen(at_least="1.35", gates={GATE: True})}, setting)
    assert holds({"kubelet": ComponentWhen(at_least="1.35", below="1.36")}, setting)
    assert not holds(
        {"apiserver": ComponentWhen(at_least="1.35"), "scheduler": ComponentWhen(at_least="1.35")}, setting
    )
    assert not holds({"apiserver": ComponentWhen(below="1.35")}, setting)
    assert not holds({"apiserver": ComponentWhen(gates={GATE: False})}, setting)


def test_a_restart_after_the_path_keeps_the_last_version(tmp_path: Path) -> None:
    text = PATH.replace("    paths:", "    after: [before]\n    paths:").replace(
        "    - name: after\n      wait: {object: {kind: Node, name: node-0, condition: Ready=True}}",
        "    - restart: kube-scheduler\n    - restart: controllers",
    )
    (cell,) = planned(tmp_path, text).cells
    steps = _spec(cell)["steps"]
    assert isinstance(steps, list)
    assert [step["restart"] for step in steps if "restart" in step][-2:] == [
        {
            "component": "kube-scheduler",
            "emulatedVersion": "1.34",
            "featureGates": {"NominatedNodeNameForExpectation": False},
        },
        "controllers",
    ]


def test_processes_of_one_component_at_two_versions(tmp_path: Path) -> None:
    versions = 'versions: {apiserver: ["1.33", "1.35", "1.36"], scheduler: ["1.34", "1.35"]}'
    replaced = 'versions: {apiserver: ["1.35"], apiserver-1: ["1.36", "1.37"]}'
    assert versions in CLEARING
    first, second = planned(tmp_path, CLEARING.replace(versions, replaced), only="gates=default").cells
    cluster = _spec(first)["cluster"]
    assert isinstance(cluster, dict)
    assert cluster["components"]["apiserver"] == {"emulatedVersion": "1.35"}
    assert cluster["components"]["apiserver-1"] == {"emulatedVersion": "1.36"}
    assert first.cell.unsupported == ()
    assert second.cell.unsupported == ("API servers 1.35 and 1.37 are more than one minor version apart",)


def test_a_row_may_run_every_combination(tmp_path: Path) -> None:
    text = CLEARING.replace("    kep: 5278\n", "    full: true\n", 1)
    assert len(planned(tmp_path, text).cells) == 10
