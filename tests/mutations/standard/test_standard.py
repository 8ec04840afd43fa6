"""The standard commands with mutations: what is run, in which order, and what the table says."""

from __future__ import annotations

import json
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from nominee.commands.chaos.explore import chaos
from tests.mutations.launch import ROOT
from tests.mutations.standard.commands import Command, RecipeError, standard_commands
from tests.mutations.standard.job import Task, read, with_files
from tests.mutations.standard.results import UNMUTATED, Result, Results
from tests.mutations.standard.schedule import pending
from tests.mutations.standard.table import Chosen, lines, problems
from tests.mutations.unseen.table import UNSEEN

MAKEFILE = """\
check:
\tnominee chaos run --duration 1s

chaos: setup
\tpytest -m chaos
\t$(BIN)/nominee chaos explore scenarios/pods.yaml --seed 1 --budget 45s
\t$(BIN)/nominee chaos explore scenarios/pods.yaml --name p --seed 1 \\
\t\t--budget=45s --simulate
\t$(BIN)/nominee chaos run --seed 1 --duration 20s
\t$(BIN)/nominee chaos run --seed 2 --duration 20s --rounds 2
\t$(BIN)/nominee chaos generate --seed 1 --budget 10s

other:
\tnominee chaos run --duration 1s
"""
SHELL = "chaos:\n\tnominee chaos run --duration 1s || broken=1; exit $$broken\n"
FAST = Command(label="fast", words=("fast", "--simulate"), seconds=1.0)
SLOW = Command(label="slow", words=("slow", "--simulate"), seconds=2.0)
REAL = Command(label="real", words=("real",), seconds=2.0)
FIVE = {unseen.mutation.name: unseen for unseen in UNSEEN[:5]}


def result(mutation: str, command: Command = FAST, *, observation: str = "", commit: str = "c") -> Result:
    return Result(
        mutation=mutation,
        label=command.label,
        words=command.words,
        commit=commit,
        observation=observation,
        runs=2,
        seconds=3.0,
    )


def test_the_commands_of_the_recipe_get_three_times_their_time_the_cheapest_first() -> None:
    found = standard_commands(MAKEFILE)
    assert [(each.label, each.seconds) for each in found] == [
        ("generate", 30.0),
        ("run", 60.0),
        ("explore p simulated", 135.0),
        ("run (2)", 120.0),
        ("explore pods", 135.0),
    ]
    assert found[0].words[-7:] == ("--budget", "30s", "--stop", "--tries", "0", "-o", "json")
    assert [each.is_simulated for each in found] == [True, False, True, False, False]
    assert found[1].words == ("chaos", "run", "--seed", "1", "--duration", "60s", "-o", "json")
    assert found[2].words[-6:] == ("--budget", "135s", "--simulate", "--stop", "-o", "json")


def test_no_command_gets_more_than_is_asked_for() -> None:
    limited = [each.limited(30.0) for each in standard_commands(MAKEFILE)]
    assert [each.seconds for each in limited] == [30.0] * 5
    assert limited[3].words[-4:] == ("--rounds", "1", "-o", "json"), "fewer rounds first"
    assert "30s" in limited[3].words
    assert limited[1].words == ("chaos", "run", "--seed", "1", "--duration", "30s", "-o", "json")
    assert limited[2].words[-6:] == ("--budget", "30s", "--simulate", "--stop", "-o", "json")
    assert standard_commands(MAKEFILE)[1].limited(60.0) == standard_commands(MAKEFILE)[1]


REPLAY = Command(
    label="replays",
    words=("chaos", "explore", "a-*.yaml", "b.yaml", "--outcomes", "replay", "--simulate", "--stop"),
    seconds=9.0,
)


def test_a_replay_has_all_recorded_cases() -> None:
    recipe = (
        "chaos: setup\n\tnominee chaos explore a.yaml --simulate --outcomes replay --cases 3 --budget 9s\n"
    )
    (found,) = standard_commands(recipe)
    assert "--cases" not in found.words
    assert found.limited(1.0) == found, "its cases are the same"


def test_each_file_with_recorded_outcomes_is_replayed_by_one_command() -> None:
    commands = standard_commands((ROOT / "Makefile").read_text(encoding="utf-8"))
    replays = [each.words for each in commands if "replay" in each.words]
    recorded = [f"scenarios/{path.name}" for path in (ROOT / "scenarios" / "outcomes").iterdir()]
    assert recorded
    for file in recorded:
        found = [words for words in replays if any(fnmatchcase(file, word) for word in words)]
        assert len(found) == 1, f"{file}: {found}"


def test_an_exploration_has_more_cases() -> None:
    (found,) = standard_commands(
        "chaos: setup\n\tnominee chaos explore a.yaml --simulate --cases 3 --budget 9s\n"
    )
    assert found.words[3:7] == ("--simulate", "--cases", "9", "--budget")


def test_one_scenario_of_a_replay_is_run_alone() -> None:
    assert REPLAY.is_fixed
    assert not FAST.is_fixed
    words = ["chaos", "explore", "a-1.yaml", "--outcomes", "replay", "--simulate", "--stop", "--name", "s"]
    assert REPLAY.narrowed("a-1.yaml s ") == words
    one = replace(FAST, words=("chaos", "explore", "a.yaml", "--name", "s", "--simulate"))
    assert one.narrowed("a.yaml s x:y=crash") == [
        *("chaos", "explore", "a.yaml", "--simulate", "--name", "s", "--case", "x:y=crash")
    ]


@pytest.mark.parametrize(
    "text", ["", "chaos: setup\n\tpytest\n", "chaos:\n\tnominee chaos run --seed 1\n", SHELL]
)
def test_a_recipe_without_commands_or_times_or_with_more_of_a_shell_is_an_error(text: str) -> None:
    with pytest.raises(RecipeError):
        standard_commands(text)


def test_the_makefile_has_commands_with_labels_of_their_own() -> None:
    found = standard_commands((ROOT / "Makefile").read_text(encoding="utf-8"))
    assert len({each.label for each in found}) == len(found) >= 3


def test_the_command_line_accepts_every_command_of_the_makefile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for found in standard_commands((ROOT / "Makefile").read_text(encoding="utf-8")):
        _, name, *words = found.words
        chaos.commands[name].make_context(name, with_files(words))


def test_a_finding_ends_a_mutation_and_the_program_itself_gets_every_command(tmp_path: Path) -> None:
    results = Results(tmp_path / "r.jsonl", "c")
    ran = list[tuple[str, list[str]]]()
    for mutation, due in pending([UNMUTATED, "a", "b"], [FAST, SLOW, REAL], results):
        ran.append((mutation, [task.command.label for task in due]))
        for task in due:
            results.add(result(mutation, task.command, observation="broken" if mutation == "a" else ""))
    assert ran == [
        (UNMUTATED, ["fast"]),
        (UNMUTATED, ["slow"]),
        ("a", ["fast", "slow"]),
        ("b", ["fast", "slow"]),
        (UNMUTATED, ["real"]),
        ("b", ["real"]),
    ]
    assert list(pending([UNMUTATED, "a", "b"], [FAST, REAL], Results(tmp_path / "r.jsonl", "c"))) == []


def test_what_follows_a_command_that_ended_its_process_is_run(tmp_path: Path) -> None:
    results = Results(tmp_path / "r.jsonl", "c")
    ran = list[list[str]]()
    for mutation, due in pending(["a"], [FAST, SLOW], results):
        ran.append([task.command.label for task in due])
        results.add(replace(result(mutation, due[0].command), error="killed"))
    assert ran == [["fast", "slow"], ["slow"]]


def test_results_of_other_commits_and_torn_lines_do_not_count(tmp_path: Path) -> None:
    file = tmp_path / "build" / "r.jsonl"
    Results(file, "c").add(result("a"))
    Results(file, "d").add(result("b", commit="d"))
    with file.open("a", encoding="utf-8") as out:
        out.write('{"mutation": "x')
    read_again = Results(file, "c")
    assert read_again.of("a") == [result("a")]
    assert not read_again.of("b")
    assert read_again.has("a", FAST.words)
    assert not read_again.has("a", ("fast", "--simulate", "--budget", "9s"))


def test_a_command_that_could_not_be_carried_out_is_run_again(tmp_path: Path) -> None:
    results = Results(tmp_path / "r.jsonl", "c")
    results.add(replace(result(UNMUTATED), error="no etcd"))
    chosen = Chosen(known=[], unseen={})
    assert problems(chosen, results) == ["without a mutation fast cannot be run: no etcd"]
    assert list(pending([UNMUTATED], [FAST], results)) == [], "not again by the same process"
    results = Results(tmp_path / "r.jsonl", "c")
    assert next(pending([UNMUTATED], [FAST], results)) == (UNMUTATED, [Task(FAST)])
    results.add(result(UNMUTATED))
    assert problems(chosen, results) == []
    assert list(pending([UNMUTATED], [FAST], results)) == []


@pytest.mark.parametrize(
    ("unseen_found", "known_found", "alarm", "want"),
    [
        (4, True, "", []),
        (3, True, "", ["3 of 5 unseen are fewer than 80%"]),
        (5, False, "", ["known and not found: k"]),
        (5, True, "odd", ["without a mutation fast reports: odd"]),
    ],
)
def test_what_is_not_enough(
    tmp_path: Path, unseen_found: int, known_found: bool, alarm: str, want: list[str]
) -> None:
    results = Results(tmp_path / "r.jsonl", "c")
    results.add(result(UNMUTATED, observation=alarm))
    results.add(result("k", observation="broken" if known_found else ""))
    for number, name in enumerate(FIVE):
        results.add(result(name, observation="broken" if number < unseen_found else ""))
    chosen = Chosen(known=["k"], unseen=FIVE)
    assert problems(chosen, results) == want
    table = list(lines(chosen, results))
    assert table[2].startswith(f"| {UNMUTATED} | ")
    assert f"unseen: {unseen_found} of 5" in table
    assert sum("| not found |" in line for line in table) == 5 - unseen_found + (not known_found)


def test_the_findings_of_both_kinds_of_commands_are_read() -> None:
    broken = {"case": "x=crash", "observation": "two pods", "verdict": "broken"}
    exploration = {"scenario": "s", "broken": [broken], "error": "", "runs": 7}
    assert read(json.dumps({"explorations": [exploration]})) == {
        "observation": "two pods",
        "case": "x=crash",
        "scenario": "s",
        "error": "",
        "runs": 7,
    }
    silent = {"seed": 1, "ran": True, "problems": []}
    assert read(json.dumps({"runs": [silent]})) == {"runs": 1}
    failed = {"seed": 2, "ran": True, "problems": ["a", "b"]}
    assert read(json.dumps({"runs": [silent, failed]})) == {
        "observation": "a; b",
        "case": "seed 2",
        "runs": 2,
    }
    impossible = {"seed": 1, "ran": False, "problems": ["no etcd"]}
    assert read(json.dumps({"runs": [impossible]})) == {"error": "no etcd", "runs": 1}
    assert "no JSON" in read("Traceback")["error"]
