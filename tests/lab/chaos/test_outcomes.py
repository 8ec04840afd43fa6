"""The outcomes of scenarios: facts of a run, those that several runs have in common, and their file."""

from __future__ import annotations

import json
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from nominee.commands.chaos.explore import chaos
from nominee.lab.chaos.outcomes import file as outcomes
from nominee.lab.chaos.outcomes.comparison import Outcomes, Recorded, differences, record
from nominee.lab.chaos.outcomes.facts import Facts, ends_of, facts_of
from nominee.lab.scenario.result import Outcome, ScenarioResult, StepResult
from nominee.machinery.api.pb import core
from tests.lab.chaos.test_options import SMALL
from tests.lab.invariants.histories import History, event, node, pod

RESULT = ScenarioResult(
    scenario="s",
    outcome=Outcome.PASSED,
    steps=(
        StepResult(
            number=1,
            verb="expect",
            name="",
            line=1,
            started_seconds=0.0,
            seconds=4.0,
            outcome=Outcome.PASSED,
        ),
    ),
)


def generated(prefix: str, end: str) -> core.Pod:
    found = pod(f"{prefix}{end}")
    found.metadata.generateName = prefix
    return found


def on(obj: core.Pod, name: str, phase: str = "") -> core.Pod:
    found = deepcopy(obj)
    found.spec.nodeName = name
    found.status.phase = phase or found.status.phase
    return found


def facts(history: History) -> Facts:
    return facts_of(history.revisions, RESULT)


def test_a_field_has_its_values_in_order() -> None:
    waiting = pod("p", conditions={"PodScheduled": "Unschedulable"})
    found = facts(History().put(waiting, on(waiting, "n1"), on(waiting, "n1", "Running")))["Pod default/p"]
    assert found["spec.nodeName"] == "n1"
    assert found["status.phase"] == "Pending > Running"
    assert found["status.conditions[PodScheduled]"] == "True Unschedulable"
    assert (found["object"], found["writes"]) == ("created", "3")
    assert "metadata.uid" not in found


def test_what_was_there_before_has_facts_where_it_changes() -> None:
    known, tainted = node("n1"), node("n1", taints=("example.com/full",))
    found = facts(History().state(known).put(tainted, known))["Node n1"]
    taint = "spec.taints[example.com/full]"
    assert found == {
        f"{taint}.key": "example.com/full > unset",
        f"{taint}.effect": "NoSchedule > unset",
        "writes": "2",
    }


def test_an_object_that_is_created_again_has_one_row() -> None:
    found = facts(History().put(pod("p")).delete(pod("p")).put(on(pod("p"), "n1")))["Pod default/p"]
    assert found["object"] == "created > deleted > created"


def test_drawn_names_are_one_subject() -> None:
    first, second = generated("web-", "x7k2p"), generated("web-", "9qw4z")
    history = History().put(first, second, on(first, "n1"), on(second, "n2"))
    history.put(event("e1", "Scheduled", first, note=f"assigned {first.metadata.name} to n1"))
    found = facts(history)
    assert found["Pod default/web-*"]["spec.nodeName"] == "1 x n1 | 1 x n2"
    assert found["Pod default/web-*"]["objects"] == "2"
    assert found["Pod default/web-*"]["events"] == " Scheduled: assigned web-* to n1"
    assert found["order"]["bound"] == "web-*, web-*"


def test_the_order_of_pods_and_the_seconds_of_steps_are_facts() -> None:
    one, two = pod("one"), pod("two")
    history = History().put(one, two, on(two, "n1"), on(one, "n1")).delete(one)
    found = facts(history)
    assert found["order"] == {"bound": "two, one", "deleted": "one"}
    assert found["steps"] == {"1 expect seconds": "4.00"}


def run(**texts: str) -> Facts:
    return {"Pod default/p": {"object": "created", "status.phase": "Running", "writes": "3"} | texts}


def test_facts_in_common_are_recorded() -> None:
    found = record([run(), run(writes="5"), run(), run()])
    assert found == {
        "Pod default/p": {"object": ["created"], "status.phase": ["Running"], "writes": ["3..5"]}
    }
    of_two = record([run(node="n1"), run(node="n2"), run(node="n1"), run(node="n2")])
    assert of_two["Pod default/p"]["node"] == ["n1", "n2"]
    assert "node" not in record([run(node=f"n{number}") for number in range(4)])["Pod default/p"]
    ends = record([run(phase=f"{number} > Running") for number in range(4)])
    assert ends["Pod default/p"]["phase"] == ["... > Running"]


RECORDED: Recorded = {
    "Pod default/p": {
        "object": ["created"],
        "spec.nodeName": ["n1", "n2"],
        "status.phase": ["... > Running"],
        "writes": ["3..5"],
    },
    "steps": {"1 expect seconds": ["4..6"]},
}
AS_RECORDED: Facts = {
    "Pod default/p": {
        "object": "created",
        "spec.nodeName": "n2",
        "status.phase": "Pending > Running",
        "writes": "4",
        "something.else": "new",
    },
    "steps": {"1 expect seconds": "6.5"},
}


@pytest.mark.parametrize(
    ("subject", "name", "text", "expected"),
    [
        ("Pod default/p", "spec.nodeName", "n1", ""),
        ("Pod default/p", "spec.nodeName", "n3", "spec.nodeName is 'n3', where 'n1', or 'n2' is recorded"),
        ("Pod default/p", "status.phase", "Pending > Failed", "status.phase is 'Pending > Failed', where"),
        ("Pod default/p", "writes", "6", "writes is '6', where '3..5' is recorded"),
        ("Pod default/p", "object", "created > deleted", "object is 'created > deleted'"),
        ("steps", "1 expect seconds", "2.5", ""),
        ("steps", "1 expect seconds", "9.0", "steps: 1 expect seconds is '9.0', where '4..6' is recorded"),
        ("Pod default/q", "object", "created", "Pod default/q: object is 'created', where 'absent'"),
    ],
)
def test_a_run_is_compared(subject: str, name: str, text: str, expected: str) -> None:
    changed = deepcopy(AS_RECORDED)
    changed.setdefault(subject, {})[name] = text
    found = [str(each) for each in differences(changed, RECORDED)]
    assert len(found) == bool(expected), found
    assert not expected or expected in found[0]


def test_a_subject_of_some_runs_is_known() -> None:
    sometimes: Facts = {"Lease kube-node-lease/n1": {"object": "there > deleted"}}
    recorded = record([run() | sometimes, run(), run() | sometimes])
    assert recorded["Lease kube-node-lease/n1"] == {}
    assert list(differences(run() | sometimes, recorded)) == []
    assert len(list(differences(run() | sometimes, record([run(), run()])))) == 1


def test_a_step_that_took_no_time_is_a_fact_as_others_are() -> None:
    at_once = replace(RESULT, steps=(replace(RESULT.steps[0], seconds=0.0),))
    found = facts_of((), at_once)
    assert list(differences(found, {"steps": {"1 expect seconds": ["0.02..0.9"]}})) == []
    (late,) = differences(found, {"steps": {"1 expect seconds": ["4..6"]}})
    assert str(late) == "steps: 1 expect seconds is '0.00', where '4..6' is recorded"
    (missing,) = differences({}, {"steps": {"1 expect seconds": ["0.02..0.9"]}})
    assert str(missing) == "steps: 1 expect seconds is 'absent', where '0.02..0.9' is recorded"


def test_a_missing_object_is_a_difference() -> None:
    found = {each.name for each in differences({}, {"Pod default/p": RECORDED["Pod default/p"]})}
    assert found == {"object", "spec.nodeName", "status.phase", "writes"}


def test_a_file_has_what_was_written(tmp_path: Path) -> None:
    row = RECORDED["Pod default/p"]
    bare = {"object": ["created"], "status.phase": ["Pending"]}
    cases: dict[str, Recorded] = {
        "kubelet-0:process=away@3": {"Pod default/p": row, "Pod default/q": bare},
        "scheduler:process=restart@2": {"Pod default/p": {**row, "status.phase": ["Failed"]}},
        "scheduler:process=away@2": {"Pod default/p": row, "Node n1": {"writes": ["1..2"]}},
    }
    known = {
        "one": Outcomes((1, 2), RECORDED, cases),
        "two": Outcomes((1,), {"Pod default/p": row, "Pod default/q": bare}),
    }
    path = outcomes.path_for(tmp_path / "some.yaml")
    assert outcomes.read(path) == {}
    outcomes.write(path, known)
    found = outcomes.read(path)
    assert [(list(each.seeds), each.plain) for each in found.values()] == [
        (list(each.seeds), each.plain) for each in known.values()
    ]
    for case, recorded in cases.items():
        rows = found["one"].cases[case]
        assert {subject: row for subject, row in rows.items() if row} == recorded
        assert rows.keys() == {"Pod default/p", "Pod default/q", "Node n1"}, "those of all cases are known"
    path.write_text("a: b\n")
    with pytest.raises(ValueError, match="record them again"):
        outcomes.read(path)


def test_nothing_is_said_of_other_seeds_and_cases() -> None:
    known = Outcomes((1, 2), RECORDED, {"a:b=crash": {}})
    assert known.of("", 2) is RECORDED
    assert known.of("a:b=crash", 1) == {}
    assert known.of("", 3) is None
    assert known.of("a:c=crash", 1) is None


def test_of_a_disturbed_run_most_fields_have_one_value() -> None:
    waiting = pod("p", conditions={"PodScheduled": "Unschedulable"})
    history = History().put(waiting, on(pod("p"), "n1"), on(pod("p"), "n1", "Running"))
    history.put(event("e", "Scheduled", waiting, note="assigned"))
    found = ends_of(history.revisions, RESULT)
    assert found["Pod default/p"] == {
        "events": " Scheduled",
        "object": "created",
        "spec": found["Pod default/p"]["spec"],
        "spec.nodeName": "n1",
        "status.conditions[PodScheduled]": "unset",
        "status.phase": "Pending > Running",
    }
    assert "steps" not in found


@pytest.mark.processes
def test_outcomes_are_recorded_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])  # without the marks of a recording afterwards
    scenario = tmp_path / "small.yaml"
    scenario.write_text(SMALL.replace("NAME", "small"))
    words = ["explore", str(scenario), "--simulate", "--seed", "1", "--cases", "0"]
    held = CliRunner().invoke(chaos, [*words, "--rounds", "2", "--outcomes", "record"])
    assert held.exit_code == 0, held.output
    recorded = outcomes.path_for(scenario)
    assert CliRunner().invoke(chaos, words).exit_code == 0

    recorded.write_text(recorded.read_text().replace("Pending > Running", "Pending > Failed"))
    differs = CliRunner().invoke(chaos, words)
    assert differs.exit_code == 1
    assert "not the recorded outcome: Pod default/p: status.phase is 'Pending > Running'" in differs.output
    assert CliRunner().invoke(chaos, [*words, "--outcomes", "ignore"]).exit_code == 0
    other_seed = ["7" if word == "1" else word for word in words]
    assert CliRunner().invoke(chaos, other_seed).exit_code == 0, "it is not one of the recorded ones"


@pytest.mark.processes
def test_cases_are_recorded_and_replayed(tmp_path: Path) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(SMALL.replace("NAME", "small"))
    words = ["explore", str(scenario), "--simulate", "--seed", "1", "-o", "json"]
    # In a process of its own: it imports the components with marks.
    record = [*words, "--rounds", "2", "--cases", "3", "--outcomes", "record"]
    command = [sys.executable, "-m", "nominee.cli", "chaos", *record]
    held = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert held.returncode == 0, held.stderr
    recorded = outcomes.path_for(scenario)
    known = outcomes.read(recorded)["small"]
    assert list(known.seeds) == [1, 2]
    assert 1 < len(known.cases) <= 3

    replayed = CliRunner().invoke(chaos, [*words, "--outcomes", "replay"])
    assert replayed.exit_code == 0, replayed.output
    (found,) = json.loads(replayed.stdout)["explorations"]
    assert {each["case"] for each in found["results"]} == {"", *known.cases}

    fewer = CliRunner().invoke(chaos, [*words, "--outcomes", "replay", "--cases", "1"])
    assert [each["runs"] for each in json.loads(fewer.stdout)["explorations"]] == [2]

    case = min(known.cases)
    changed = {**known.cases[case], "Pod default/p": {"status.phase": ["Failed"]}}
    outcomes.write(recorded, {"small": Outcomes(known.seeds, known.plain, {**known.cases, case: changed})})
    differs = CliRunner().invoke(chaos, [*words, "--outcomes", "replay"])
    assert differs.exit_code == 1
    (result,) = json.loads(differs.stdout)["explorations"][0]["broken"]
    assert result["case"] == case
    assert "status.phase is 'Pending > Running', where 'Failed' is recorded" in result["observation"]
    assert f"--rules-only --case {case}" in result["reproduce"]

    again = CliRunner().invoke(chaos, [*words, "--rounds", "2", "--outcomes", "update"])
    assert again.exit_code == 0, again.output
    assert outcomes.read(recorded)["small"] == known, "the same cases, by the same program"
    not_again = CliRunner().invoke(chaos, [*words, "--rounds", "2", "--outcomes", "update"])
    assert json.loads(not_again.stdout)["explorations"][0]["runs"] == 1 + len(known.cases)
    assert "recorded:" not in not_again.stderr


@pytest.mark.parametrize("words", [("--outcomes", each) for each in ("record", "replay", "update")])
def test_outcomes_are_those_of_simulated_runs(words: tuple[str, ...], tmp_path: Path) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(SMALL.replace("NAME", "small"))
    answer = CliRunner().invoke(chaos, ["explore", str(scenario), *words])
    assert answer.exit_code == 2
    assert "is for simulations" in answer.output
