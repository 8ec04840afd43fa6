"""Measure what an open dashboard costs a busy cluster: `python -m tests.nominee.dashboard.measure_cost`.

`nominee bench scheduling` runs in turn without and with a dashboard and its page in Chromium. There are two
results: the processor time of dashboard and Chromium for 1,000 writes, which other load changes little; and
the ratios of pods a second of the pairs. It is no test: a figure of a busy machine is no verdict.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nominee.localcluster.process_usage import cpu_seconds
from nominee.localcluster.supervisor.clock import wait_until
from nominee.machinery.printing.tables import table
from tests.support.browser import Tab, chromium, open_tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BENCHMARK: Final = ("--nodes", "100", "--init-pods", "1600", "--pods", "2300")
PAIRS: Final = 5
SAMPLE_SECONDS: Final = 1.0
START_SECONDS_MAX: Final = 60.0
_HEADER: Final = ("run", "pods/s", "dashboard", "Chromium", "both", "writes", "by process", "load")
_REVISION: Final = "Number(document.getElementById('revision')?.textContent ?? 0)"


@dataclass(frozen=True, slots=True)
class Sample:
    """The newest revision on the page, and the processor time of dashboard and Chromium up to then."""

    revision: int
    dashboard: float
    browser: float


@dataclass(slots=True)
class Run:
    """A run of the benchmark; `milliseconds` of processor time for a pod are by process of the cluster."""

    pods_per_second: float
    milliseconds: Mapping[str, float]
    load: float
    samples: list[Sample] = field(default_factory=list)

    @property
    def writes(self) -> int:
        """Return the writes that the page showed meanwhile."""
        return self.samples[-1].revision - self.samples[0].revision if self.samples else 0

    def cost(self) -> tuple[float, float]:
        """Return the milliseconds of dashboard and Chromium for 1,000 writes."""
        if not self.writes:
            return 0.0, 0.0
        first, last = self.samples[0], self.samples[-1]
        spent = (last.dashboard - first.dashboard, last.browser - first.browser)
        return spent[0] * 1e6 / self.writes, spent[1] * 1e6 / self.writes

    def row(self, name: str) -> list[str]:
        """Return the run as a row of the printed table."""
        by_process = ", ".join(f"{process} {spent:.2f}" for process, spent in self.milliseconds.items())
        costs = [f"{each:.0f}" for each in (*self.cost(), sum(self.cost()))] if self.writes else ["", "", ""]
        numbers = f"{self.pods_per_second:.0f}", *costs, str(self.writes or "")
        return [name, *numbers, by_process, f"{self.load:.1f}"]


def _family(root: int) -> set[int]:
    """Return a process and its descendants."""
    parents: dict[int, int] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _spent(pids: set[int]) -> float:
    return sum(cpu_seconds(pid) or 0.0 for pid in pids)


def _of_chromium() -> set[int]:
    """Return the processes of the browser, which Playwright's driver has started."""

    def command(pid: int) -> str:
        try:
            return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0", 1)[0]
        except OSError:
            return ""

    return {pid for pid in _family(os.getpid()) if "chrom" in Path(command(pid)).name}


@contextmanager
def _dashboard(tree: Path, directory: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the dashboard of a cluster that starts, and yield the process and its URL."""
    if not wait_until((directory / "run" / "scheduler.json").exists, START_SECONDS_MAX):
        raise SystemExit(f"no cluster has started in {directory}")
    command = [str(tree / ".venv/bin/nominee"), "dashboard", "--dir", str(directory)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tree)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def _watched(tab: Tab, process: subprocess.Popen[str], ends: subprocess.Popen[str]) -> list[Sample]:
    """Return samples until the benchmark ends."""
    found: list[Sample] = []
    browser = _of_chromium()
    while ends.poll() is None:
        revision = int(tab.page.evaluate(_REVISION))
        if not found or revision > found[-1].revision:  # behind the newest write there is nothing to measure
            found.append(Sample(revision, _spent({process.pid}), _spent(browser)))
        wait_until(lambda: ends.poll() is not None, SAMPLE_SECONDS, poll_seconds=SAMPLE_SECONDS / 5)
    return found


def run(tree: Path, browser: Browser, options: Sequence[str], *, is_shown: bool) -> Run:
    """Run the benchmark of a tree once."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="nominee-cost-") as directory:
        command = [str(tree / ".venv/bin/nominee"), "bench", "scheduling", *options, "--dir", directory]
        bench = subprocess.Popen([*command, "-o", "json"], stdout=subprocess.PIPE, text=True, cwd=tree)
        try:
            samples: list[Sample] = []
            if is_shown:
                with (
                    _dashboard(tree, Path(directory)) as (process, url),
                    open_tab(browser, url, ready=".badge.live") as tab,
                ):
                    samples = _watched(tab, process, bench)
            text, _ = bench.communicate()
        finally:
            bench.terminate()
            bench.wait()
    if bench.returncode:
        raise SystemExit(bench.returncode)
    report = json.loads(text)
    return Run(report["throughput"]["average"], report["cpuMillisecondsPerPod"], load, samples)


def _spread(values: Sequence[float], digits: int = 2) -> str:
    """Return the median, and the least and most."""
    median, least, most = (
        f"{each:.{digits}f}" for each in (statistics.median(values), min(values), max(values))
    )
    return f"median {median} ({least} to {most})"


def summary(pairs: Sequence[tuple[Run, Run]]) -> Iterator[str]:
    """Yield the lines of the result: pairs of a run without and one with the page."""
    yield f"pods/s without the page: {_spread([plain.pods_per_second for plain, _ in pairs], 0)}"
    yield f"pods/s with it: {_spread([shown.pods_per_second for _, shown in pairs], 0)}"
    yield f"ratio: {_spread([shown.pods_per_second / plain.pods_per_second for plain, shown in pairs])}"
    costs = [shown.cost() for _, shown in pairs]
    yield f"dashboard: {_spread([cost[0] for cost in costs], 0)} ms for 1,000 writes"
    yield f"Chromium: {_spread([cost[1] for cost in costs], 0)} ms for 1,000 writes"
    yield f"both: {_spread([sum(cost) for cost in costs], 0)} ms for 1,000 writes"
    for process in pairs[0][0].milliseconds:
        changes = [
            shown.milliseconds[process] / plain.milliseconds[process]
            for plain, shown in pairs
            if plain.milliseconds.get(process)
        ]
        if changes:
            yield f"{process}: {_spread(changes)} times the processor time without the page"


def main() -> None:
    """Run the program; options that it does not have are the benchmark's."""
    parser = argparse.ArgumentParser(prog="python -m tests.nominee.dashboard.measure_cost")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"pairs of runs (default: {PAIRS})")
    parser.add_argument("--tree", type=Path, default=Path.cwd(), help="the tree whose commands are run")
    parser.add_argument("--only-shown", action="store_true", help="no runs without the page")
    options, benchmark = parser.parse_known_args()
    pairs: list[tuple[Run, Run]] = []
    with chromium() as browser:
        for number in range(1, max(options.pairs, 1) + 1):
            # The first run of a pair is not always that with the page.
            order = (True,) if options.only_shown else (False, True) if number % 2 else (True, False)
            found = {
                is_shown: run(options.tree, browser, benchmark or BENCHMARK, is_shown=is_shown)
                for is_shown in order
            }
            pairs.append((found.get(False, found[True]), found[True]))
            rows = [each.row(f"{number} {'with' if shown else 'without'}") for shown, each in found.items()]
            print(*table(_HEADER, rows), sep="\n", flush=True)
    print(*summary(pairs), sep="\n")


if __name__ == "__main__":
    main()
