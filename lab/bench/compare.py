"""`make bench-compare REV=...`: the scheduling benchmark of another commit and of this tree, in turn.

The other commit is built in a git worktree of its own under `build/compare/`, which is kept. Only the runs of
a pair, one right after the other, saw about the same machine: the ratios of pairs are the result.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nominee.machinery.printing.tables import table
from nominee.machinery.wire.values.scalars import Json

PAIRS = 5
_HEADER = ("", "pods/s", "ms a pod", "by process", "busy elsewhere")


@dataclass(frozen=True, slots=True)
class Run:
    """The figures of one run; processor time in milliseconds a pod, by process."""

    pods_per_second: float
    milliseconds: Mapping[str, float]
    busy_elsewhere: float

    @classmethod
    def of(cls, report: Json) -> Run:
        """Return the figures of a report of `nominee bench scheduling -o json`."""
        return cls(
            report["throughput"]["average"],
            report["cpuMillisecondsPerPod"],
            report["machine"]["busyElsewhere"],
        )

    @property
    def sum_milliseconds(self) -> float:
        return sum(self.milliseconds.values())

    def row(self, name: str) -> list[str]:
        """Return the run as a row of the printed table."""
        by_process = ", ".join(f"{process} {spent:.2f}" for process, spent in self.milliseconds.items())
        numbers = f"{self.pods_per_second:.0f}", f"{self.sum_milliseconds:.2f}"
        return [name, *numbers, by_process, f"{self.busy_elsewhere:.0%}"]


def median(runs: Sequence[Run]) -> Run:
    """Return the medians of runs, each figure on its own."""
    names = [name for name in runs[0].milliseconds if all(name in run.milliseconds for run in runs)]
    return Run(
        statistics.median(run.pods_per_second for run in runs),
        {name: statistics.median(run.milliseconds[name] for run in runs) for name in names},
        statistics.median(run.busy_elsewhere for run in runs),
    )


def summary(pairs: Sequence[tuple[Run, Run]]) -> Iterator[str]:
    """Yield the lines of the result: medians of both, and the ratios of this tree to the other commit."""
    before, after = median([each[0] for each in pairs]), median([each[1] for each in pairs])
    yield from table(_HEADER, [before.row("median before"), after.row("median now")])
    by_name = {
        "pods/s": [now.pods_per_second / then.pods_per_second for then, now in pairs],
        "ms a pod": [now.sum_milliseconds / then.sum_milliseconds for then, now in pairs],
    }
    for process in after.milliseconds:
        if all(then.milliseconds.get(process) for then, _ in pairs):
            by_name[f"ms of {process}"] = [
                now.milliseconds[process] / then.milliseconds[process] for then, now in pairs
            ]
    rows = [
        [name, f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"]
        for name, ratios in by_name.items()
    ]
    yield from table(("now / before", "median", "of the pairs"), rows)


def build(revision: str, root: Path) -> Path:
    """Return the worktree of a commit, built; it is made where it does not exist."""
    commit = _output("git", "rev-parse", "--short=12", f"{revision}^{{commit}}", cwd=root)
    tree = root / "build" / "compare" / commit
    if not tree.exists():
        _output("git", "worktree", "prune", cwd=root)
        _output("git", "worktree", "add", "--detach", str(tree), commit, cwd=root)
    # The variables of the make that called are not the other tree's.
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    subprocess.run(["make", "--no-print-directory", "setup"], cwd=tree, env=environment, check=True)
    return tree


def _output(*command: str, cwd: Path) -> str:
    return subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def _run(tree: Path, options: Sequence[str]) -> Run:
    command = [str(tree / ".venv/bin/nominee"), "bench", "scheduling", *options, "-o", "json"]
    return Run.of(json.loads(_output(*command, cwd=tree)))


def main() -> None:
    """Run the program; options that it does not have are the benchmark's."""
    parser = argparse.ArgumentParser(prog="python -m nominee.lab.bench.compare")
    parser.add_argument("revision", help="the other commit")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"pairs of runs (default: {PAIRS})")
    options, benchmark = parser.parse_known_args()
    here = Path.cwd()
    try:
        there = build(options.revision, here)
        pairs: list[tuple[Run, Run]] = []
        for number in range(1, max(options.pairs, 1) + 1):
            # The first run of a pair is not always that of the same tree.
            order = (there, here) if number % 2 else (here, there)
            found = {tree: _run(tree, benchmark) for tree in order}
            pairs.append((found[there], found[here]))
            rows = [found[there].row(f"{number} before"), found[here].row(f"{number} now")]
            print(*table(_HEADER, rows), sep="\n", flush=True)
        print(*summary(pairs), sep="\n")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(map(str, error.cmd))}: exit status {error.returncode}")


if __name__ == "__main__":
    main()
