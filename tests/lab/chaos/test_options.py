"""Options of `nominee chaos explore` and `nominee chaos run`."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from nominee.commands.chaos.explore import chaos, explore
from nominee.commands.chaos.run import run

_SHARED = ("seed", "rounds", "directory", "verbose")


def _declared(command: click.Command) -> dict[str, tuple[object, ...]]:
    """Return names, type and default of the shared options."""
    options = {option.name: option for option in command.params}
    return {
        name: (options[name].opts, options[name].type.to_info_dict(), options[name].default)
        for name in _SHARED
    }


def test_explore_and_run_share_their_options() -> None:
    assert _declared(explore) == _declared(run)


@pytest.mark.parametrize("words", [("explore", __file__), ("run", "--duration", "1s")])
def test_a_seed_is_not_negative(words: tuple[str, ...]) -> None:
    answer = CliRunner().invoke(chaos, [*words, "--seed", "-1"])
    assert answer.exit_code == 2
    assert "-1 is not in the range x>=0" in answer.output


SMALL = """
apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: NAME}
spec:
  cluster: {nodes: 1, without: [autoscaler, cloud, controllers]}
  steps:
  - apply: [{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: app}]}}]
  - expect: {eventually: {object: {kind: Pod, name: p, condition: Ready=True}}, seconds: 5}
"""


def _files(directory: Path, *names: str) -> list[str]:
    for name in names:
        (directory / f"{name}.yaml").write_text(SMALL.replace("NAME", name))
    return [str(directory / f"{name}.yaml") for name in names]


def test_several_scenarios_are_played_undisturbed(tmp_path: Path) -> None:
    files = _files(tmp_path, "one", "two")
    broken = tmp_path / "broken.yaml"
    broken.write_text(SMALL.replace("NAME", "broken").replace("Ready=True", "Ready=False"))
    words = ["--simulate", "--seed", "1", "--cases", "0", "-o", "json", "--dir", str(tmp_path / "kept")]
    held = CliRunner().invoke(chaos, ["explore", *files, *words])
    assert held.exit_code == 0, held.output
    found = json.loads(held.stdout)["explorations"]
    assert [(each["scenario"], each["runs"], len(each["broken"])) for each in found] == [
        ("one", 1, 0),
        ("two", 1, 0),
    ]
    assert not (tmp_path / "kept").exists(), "nothing was left to look at"

    failed = CliRunner().invoke(chaos, ["explore", files[0], str(broken), *words])
    assert failed.exit_code == 1
    (result,) = json.loads(failed.stdout)["explorations"][1]["broken"]
    assert (Path(result["directory"]) / "history.gz").is_relative_to(tmp_path / "kept" / "broken")
    assert (Path(result["directory"]) / "history.gz").exists()


def test_one_case_is_one_of_one_scenario(tmp_path: Path) -> None:
    files = _files(tmp_path, "one", "two")
    words = ["explore", *files, "--simulate", "--case", "scheduler:scheduler.bind.after=crash"]
    answer = CliRunner().invoke(chaos, words)
    assert answer.exit_code == 2
    assert "give --name, one of one, two" in answer.output
    answer = CliRunner().invoke(chaos, [*words, "--name", "three"])
    assert answer.exit_code == 2
    assert "there is no scenario three; there are one, two" in answer.output


SECOND = """
  - apply: [{apiVersion: v1, kind: Pod, metadata: {name: q}, spec: {containers: [{name: c, image: app}]}}]
  - expect: {eventually: {object: {kind: Pod, name: q, condition: Ready=True}}, seconds: 5}
"""


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize("case", ["kubelet-0:process=away@3", "scheduler:scheduler.bind.before=remove"])
def test_a_process_that_is_away_and_a_pod_that_is_gone(case: str, tmp_path: Path) -> None:
    (file,) = _files(tmp_path, "one")
    with Path(file).open("a") as out:
        out.write(SECOND.lstrip("\n"))
    Path(file).write_text(Path(file).read_text().replace(", controllers]", "]"))
    words = ["explore", file, "--simulate", "--seed", "1", "-o", "json", "--case", case]
    answer = CliRunner().invoke(chaos, [*words, "--rules-only"])
    assert answer.exit_code == 0, answer.output
    (found,) = json.loads(answer.stdout)["explorations"]
    (result,) = found["results"]
    assert result["verdict"] == "held"
    assert result["novelty"] > 0, "the history differs from the undisturbed one"
    strict = CliRunner().invoke(chaos, words)
    assert strict.exit_code == (1 if "remove" in case else 0), "a check is about the pod"
