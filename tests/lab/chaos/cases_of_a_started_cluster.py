"""Run cases in forks and in simulations of their own, with a scenario's file as argument.

It is a program, since the process of a test may have threads.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from nominee.lab.chaos import started_cluster
from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.observations import Ran, Undisturbed
from nominee.lab.chaos.clusters import SimulatedClusters
from nominee.lab.chaos.disturbed_run import run_case
from nominee.lab.chaos.messages import CaseAnswer
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.reading import read_file
from nominee.machinery.wire.values.scalars import Json

CASES = (
    "",
    "scheduler:scheduler.bind.after=crash",
    "kubelet-0:kubelet.status.before=error",
    "scheduler:scheduler.bind.before=pause",
    "scheduler:pods=stale",
    "scheduler:apiserver.Bind.pods=lose-response",
    "kubelet-0:clock=ahead",
)
KILLED = "scheduler:clock=behind"
"""The process of this case is killed."""


async def _run_or_die(scenario: Scenario, case: Case, *others: Any, **more: Any) -> Ran:
    if str(case) == KILLED:
        os.kill(os.getpid(), signal.SIGKILL)
    return await run_case(scenario, case, *others, **more)


def _content(file: Path) -> bytes:
    data = file.read_bytes()
    return gzip.decompress(data) if file.suffix == ".gz" else data


def digest(*parts: bytes) -> str:
    """Return a digest of the parts."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def play(file: Path, seed: int) -> dict[str, Json]:
    """Return for each case its error, whether it was reached, and digests of its answer and its files."""
    (scenario,) = read_file(file)
    found: dict[str, Json] = {}
    with tempfile.TemporaryDirectory() as folder:
        clusters = SimulatedClusters(scenario, Path(folder))
        cases = [Case.parse(text) if text else Case() for text in (*CASES, KILLED, "")]
        for each in clusters.run(cases, Undisturbed(), seed):
            kept = clusters.keep()
            files = sorted(Path(kept).iterdir()) if kept else []
            found[str(each.case)] = {
                "error": each.answer.error,
                "reached": each.answer.reached,
                "answer": digest(json.dumps(each.answer.as_json()).encode()),
                "files": [file.name for file in files],
                "contents": digest(*map(_content, files)),
            }
        clusters.close()
    return found


def main(file: Path) -> None:
    """Print the results: in forks, in forks without time, in forks whose files are kept, without forks."""
    patch.object(started_cluster, "run_case", _run_or_die).start()
    results = {"forked": play(file, 2)}
    with patch.object(started_cluster, "CASE_SECONDS_MAX", 0.0):
        results["late"] = play(file, 2)
    patch.object(CaseAnswer, "all_held", new=False).start()
    results["kept"] = play(file, 2)
    patch.object(started_cluster, "can_fork", lambda: False).start()
    results["own"] = play(file, 2)
    print(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
