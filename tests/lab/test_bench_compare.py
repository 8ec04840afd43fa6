"""The comparison of two commits: medians, ratios of pairs, and the worktree of the other commit."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from nominee.lab.bench.compare import Run, build, median, summary

REPORT = {
    "throughput": {"average": 250.0},
    "cpuMillisecondsPerPod": {"apiserver": 2.0, "scheduler": 1.0},
    "machine": {"busyElsewhere": 0.3},
}


def run(pods_per_second: float, apiserver: float, scheduler: float) -> Run:
    return Run(pods_per_second, {"apiserver": apiserver, "scheduler": scheduler}, 0.1)


def test_a_report_is_read() -> None:
    found = Run.of(REPORT)
    assert (found.pods_per_second, found.sum_milliseconds, found.busy_elsewhere) == (250.0, 3.0, 0.3)
    assert found.row("before") == ["before", "250", "3.00", "apiserver 2.00, scheduler 1.00", "30%"]


def test_the_median_is_of_each_figure() -> None:
    runs = [run(100, 3.0, 1.0), run(300, 1.0, 2.0), run(200, 2.0, 9.0)]
    assert median(runs) == run(200, 2.0, 2.0)


def test_the_ratios_are_those_of_pairs() -> None:
    pairs = [(run(100, 4.0, 1.0), run(150, 2.0, 1.0)), (run(10, 40.0, 10.0), run(20, 10.0, 10.0))]
    pairs.append((run(200, 2.0, 1.0), run(200, 2.0, 1.0)))
    lines = list(summary(pairs))
    found = {name: words.split() for name, words in (re.split(r"\s{2,}", line, maxsplit=1) for line in lines)}
    assert found["pods/s"] == ["1.50", "1.00", "to", "2.00"]
    assert found["ms a pod"] == ["0.60", "0.40", "to", "1.00"]
    assert found["ms of apiserver"] == ["0.50", "0.25", "to", "1.00"]
    assert found["ms of scheduler"] == ["1.00", "1.00", "to", "1.00"]


@pytest.mark.processes
def test_the_other_commit_is_built_in_a_worktree(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        command = ["git", "-c", "user.name=n", "-c", "user.email=n@example.com", *words]
        subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.PIPE)

    git("init", "-q")
    for text in ("before", "now"):
        (tmp_path / "Makefile").write_text(f"setup:\n\techo {text} > built\n")
        git("add", "-A")
        git("commit", "-qm", text)
    tree = build("HEAD~1", tmp_path)
    assert tree.parent == tmp_path / "build" / "compare"
    assert (tree / "built").read_text() == "before\n"
    assert build("HEAD~1", tmp_path) == tree
    with pytest.raises(subprocess.CalledProcessError):
        build("no-such-commit", tmp_path)
