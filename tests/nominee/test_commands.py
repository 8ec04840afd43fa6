"""Commands in this process: gates, failpoints without a cluster, and mistakes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nominee.command_group import nominee
from nominee.localcluster.declared_failpoints import all_sentences
from tests.support.patience import PATIENCE_SECONDS

PREEMPTION = "InPlacePodVerticalScalingSchedulerPreemption"


def run(*words: str) -> Result:
    return CliRunner().invoke(nominee, words)


def test_gates_as_a_table_and_as_json() -> None:
    lines = run("gates", "--emulated-version", "1.34").output.splitlines()
    row = next(line for line in lines if line.startswith("NominatedNodeNameForExpectation "))
    assert row.split()[1:4] == ["alpha", "off", "scheduler"]
    assert not any(line.startswith(PREEMPTION) for line in lines), "the gate is newer than 1.34"
    documents = json.loads(run("gates", "-o", "json").output)
    found = next(each for each in documents if each["name"] == "GangScheduling")
    assert found["versions"] == {
        "1.35": {"stage": "alpha", "default": False, "locked": False},
        "1.36": {"stage": "alpha", "default": False, "locked": False},
    }
    assert (found["mergedSince"], found["mergedInto"]) == ("1.37", "GenericWorkload")
    assert (found["components"], found["needs"]) == (["scheduler"], ["GenericWorkload"])


def test_one_gate_by_another_name() -> None:
    text = run("gates", "SchedulerPreemptionForPodResize").output
    assert text.startswith(f"{PREEMPTION}: The scheduler evicts pods of lower priority")
    assert "Components: apiserver, kubelet, scheduler\n" in text
    assert "  1.37  alpha off\n  1.38  beta on\n" in text


def _differing(old: str, new: str) -> list[tuple[str, ...]]:
    """Return component, name and both states of each row."""
    lines = run("gates", "--diff", old, new).output.splitlines()
    assert lines[0].split() == ["COMPONENT", "NAME", old, new, "DESCRIPTION"]
    return [tuple(re.split(r"  +", line)[:4]) for line in lines[1:]]


def test_gates_that_differ_between_two_versions() -> None:
    cells = _differing("1.35", "1.37")
    assert [cell[0] for cell in cells] == sorted(cell[0] for cell in cells)
    assert ("apiserver", "NodeDeclaredFeatures", "alpha off", "GA on, locked") in cells
    assert ("scheduler", "NodeDeclaredFeatures", "alpha off", "GA on, locked") in cells
    assert ("apiserver", PREEMPTION, "-", "alpha off") in cells
    assert ("scheduler", "GangScheduling", "alpha off", "-") in cells, "it was merged into GenericWorkload"
    assert not any(cell[1] == "NominatedNodeNameForExpectation" for cell in cells), "beta on in both"
    assert _differing("1.37", "1.35") == [(component, name, b, a) for component, name, a, b in cells]


def test_the_difference_of_gates_as_json() -> None:
    off, on = ({"stage": "alpha", "default": False}, {"stage": "beta", "default": True})
    one = {
        "name": "VolumeLimitScaling",
        "versions": {"1.36": off | {"locked": False}, "1.37": on | {"locked": False}},
    }
    found = json.loads(run("gates", "VolumeLimitScaling", "--diff", "1.36", "1.37", "-o", "json").output)
    assert found == {"autoscaler": [one], "scheduler": [one]}
    rows = json.loads(run("gates", "--diff", "1.33", "1.34", "-o", "json").output)[""]
    unread = {row["name"]: row["versions"] for row in rows}
    assert unread["SchedulerAsyncAPICalls"] == {
        "1.33": None,
        "1.34": on | {"default": False, "locked": False},
    }


def test_versions_without_a_difference() -> None:
    answer = run("gates", "--diff", "1.36", "1.36")
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert answer.stderr == "no gate differs between 1.36 and 1.36\n"
    assert run("gates", "--diff", "1.36", "1.36", "-o", "json").output == "{}\n"


def test_failpoints_without_a_cluster(tmp_path: Path) -> None:
    listed = json.loads(run("failpoint", "--list", "-o", "json").output)
    assert {each["name"]: each["description"] for each in listed} == all_sentences()
    lines = run("failpoint", "kubelet-1", "--dir", str(tmp_path)).output.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [
        name for name in all_sentences() if name.startswith("kubelet.")
    ]
    assert lines[1].endswith(all_sentences()["kubelet.register.before"])


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("gates", "GangSchedulin"), 1, "unknown feature gate GangSchedulin; there are GangScheduling"),
        (("gates", "--emulated-version", "1.12"), 2, "emulation version 1.12 is not between"),
        (("failpoint",), 2, "name a component, or give --list"),
        (("failpoint", "foo", "--list"), 2, "unknown component 'foo'; known are etcd, "),
        (("failpoint", "etcd"), 1, "etcd has no failpoints"),
        (("failpoint", "scheduler", "scheduler.bind.befor"), 1, "there are scheduler.bind.before, "),
        (("fault", "scheduler"), 1, "scheduler does not run in"),
        (("fault", "etcd"), 1, "set the fault at the API server"),
        (("clock", "scheduler", "soon"), 2, "'soon': write seconds, as +30, or a duration, as -5m"),
        (("restart", "cloud", "--emulated-version", "1.36"), 2, "cloud has no emulated version"),
        (("restart", "scheduler", "--emulated-version", "1.12"), 2, "emulation version 1.12 is not"),
        (("restart", "scheduler", "--feature-gates", "Gate=maybe"), 2, "invalid value of Gate=maybe"),
    ],
)
def test_mistakes(words: tuple[str, ...], status: int, message: str, tmp_path: Path) -> None:
    directory = () if words[0] == "gates" else ("--dir", str(tmp_path))
    found = run(*words, *directory)
    assert (found.exit_code, message in found.output) == (status, True), found.output


@pytest.mark.processes
def test_a_gate_without_effect_is_a_warning(tmp_path: Path) -> None:
    gates = ("--feature-gates", "NominatedNodeNameForExpectation=false")
    found = run("restart", "kubelet", *gates, "--dir", str(tmp_path))
    assert "has no effect on kubelet; it is for scheduler" in found.output
    planned = run("up", "--dry-run", *gates, "--dir", str(tmp_path))
    assert planned.exit_code == 0, planned.output
    assert planned.output.count("NominatedNodeNameForExpectation=false") == 1, (
        "the scheduler's, and no other's"
    )
    assert "no effect" not in planned.output
    found = run("up", "--dry-run", "--components", "etcd,apiserver", *gates, "--dir", str(tmp_path))
    assert "has no effect here: scheduler would read it" in found.output


@pytest.mark.parametrize("words", [("--help",), ("scenario", "--help"), ("verify", "--help")])
def test_help_imports_no_grpc_no_messages_and_no_history(words: tuple[str, ...]) -> None:
    script = (
        f"import sys; sys.argv[1:] = {words}\n"
        "from nominee.cli import main\n"
        "try: main()\n"
        "finally: assert not {'grpc', 'nominee.pb', 'nominee.lab.history'} & set(sys.modules)"
    )
    subprocess.run(
        [sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE_SECONDS
    )


@pytest.mark.parametrize(
    "words",
    [
        ("scenario", "run", "scenarios/faults.yaml"),
        ("chaos", "run", "--seed", "1"),
        ("chaos", "generate", "--seed", "1"),
        ("bench", "scheduling"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_directory_that_cannot_be_made_is_refused_at_once(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "file").touch()
    result = run(*words, "--dir", str(tmp_path / "file" / "d"))
    assert result.exit_code == 2
    assert f"Invalid value for '--dir': {tmp_path / 'file'} is a file" in " ".join(result.output.split())


def test_a_benchmark_names_the_option_that_is_too_large() -> None:
    result = run("bench", "scheduling", "--nodes", "3", "--pods", "3")
    assert result.exit_code == 2
    assert "Error: --init-pods: 3 nodes have room for" in result.output
