"""One cell's process and its files: what an executor starts, and what it keeps.

A cell runs in a short directory of its own (a socket's path has at most 107 bytes), and what a reader needs
is kept: the scenario, the steps, the logs and the history, but not etcd's data.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from nominee.lab.commit import commit
from nominee.lab.history import history_file
from nominee.lab.scenario.format.documents import read_documents
from nominee.lab.scenario.play.program import Plan
from nominee.lab.scenario.result import Outcome, ScenarioResult
from nominee.localcluster.ending import end
from nominee.localcluster.supervisor.clock import wait_until
from nominee.localcluster.supervisor.directory import write_atomically
from nominee.machinery.process import file_lock

SCENARIO, STEPS, RESULT, LOGS = "scenario.yaml", "steps.txt", "result.json", "logs"
START_SECONDS_MAX = 150.0
"""What a cell may take besides its scenario: the start of its cluster and the end."""
STOP_SECONDS_MAX = 20.0
PROGRAM, SIMULATED = "nominee.lab.skew.cell_program", "simulated"
_LOG_BYTES_MAX = 8 << 20
_LINE_CHARACTERS_MAX = 300
_CLUSTER, _RESULTS = "c", "results.json"
_PREFIX, _LOCK = "nominee-cell-", "lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A cell to run: its id, its scenario's text and digest, and the limit of the whole process.

    `simulated`: in a simulation, not on real processes. `version` is Nominee's: a worker on another machine
    may have another one.
    """

    id: str
    text: str
    digest: str
    seconds_max: float
    simulated: bool = False
    version: str = field(default_factory=lambda: version("nominee"))


def start(job: Job, work: Path) -> subprocess.Popen[bytes]:
    """Start a cell in an empty directory. It ends when this process, or the calling thread, ends."""
    file = work / SCENARIO
    file.write_text(job.text, encoding="utf-8")
    name = read_documents(job.text, str(file))[0].value["metadata"]["name"]
    plan = Plan(
        scenarios=[(str(file), name)],
        directory=str(work / _CLUSTER),
        results=str(work / _RESULTS),
        to_stderr=True,
    )
    arguments = [str(os.getpid()), plan.to_json(), *([SIMULATED] if job.simulated else [])]
    with (work / STEPS).open("wb") as steps:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", PROGRAM, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=steps,
            stderr=steps,
            env={**os.environ, "TMPDIR": str(work)} if job.simulated else None,
            process_group=0,
        )


def stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Let cells stop their clusters; kill those that do not, and with them their clusters."""
    end(processes, STOP_SECONDS_MAX)


@dataclass(frozen=True, slots=True)
class WorkDirectory:
    """A temporary directory for a cell; `lock` is held until it is removed, or the process ends."""

    path: Path
    lock: int

    @classmethod
    def make(cls) -> WorkDirectory:
        """Make a directory; remove those whose processes on this machine were killed."""
        for lock in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_LOCK}"):
            if file_lock.holder(lock) is None:
                shutil.rmtree(lock.parent, ignore_errors=True)
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = path / "new"
        held = file_lock.acquire(lock)
        lock.rename(path / _LOCK)  # no other process sees it before it is locked
        return cls(path, held)

    def remove(self) -> None:
        """Remove the directory, in which processes of a killed cluster may still write for a moment."""

        def is_gone() -> bool:
            shutil.rmtree(self.path, ignore_errors=True)
            return not self.path.exists()

        wait_until(is_gone, STOP_SECONDS_MAX)
        os.close(self.lock)


def keep(job: Job, work: Path, target: Path, problem: str) -> None:
    """Move what a reader needs to a directory, which then has RESULT; `problem`: why the process failed."""
    result = _result(work, problem)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    cluster = work / _CLUSTER
    for source in (work / SCENARIO, work / STEPS, cluster / history_file.NAME):
        with suppress(FileNotFoundError):
            shutil.move(source, target / source.name)
    (target / LOGS).mkdir()
    for log in sorted(cluster.glob("logs/*.log")):
        shutil.copyfile(log, target / LOGS / log.name)
        os.truncate(target / LOGS / log.name, min(log.stat().st_size, _LOG_BYTES_MAX))
    document = {
        "id": job.id,
        "digest": job.digest,
        "version": job.version,
        "simulated": job.simulated,
        "commit": commit(),
        "result": result.as_json(),
    }
    write_atomically(target / RESULT, json.dumps(document).replace(f"{work}/", ""))


def _result(work: Path, problem: str) -> ScenarioResult:
    try:
        (document,) = json.loads((work / _RESULTS).read_text(encoding="utf-8"))
        return ScenarioResult.from_json(document)
    except (OSError, ValueError, KeyError, TypeError):
        reason = ": ".join([problem or "the process of the cell left no result", *_last_line(work / STEPS)])
        return ScenarioResult(scenario="", outcome=Outcome.ERROR, reason=reason)


def _last_line(steps: Path) -> list[str]:
    """Return the last line that the process has printed: the error, if it ended with one."""
    try:
        lines = steps.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line.strip()[:_LINE_CHARACTERS_MAX] for line in lines if line.strip()][-1:]
