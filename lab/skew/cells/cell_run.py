"""A cell as a job, and its files: scenario, steps, logs and history, but not etcd's data."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from nominee.lab.history import history_file
from nominee.lab.jobs.directory import last_line
from nominee.lab.jobs.job import Ended, Job, Write
from nominee.lab.scenario.format.replacing import Programs
from nominee.lab.scenario.result import Outcome, ScenarioResult
from nominee.lab.skew.matrix.planning import PlannedCell
from nominee.localcluster.supervisor.directory import write_atomically
from nominee.machinery.wire.values.scalars import Json

SCENARIO, STEPS, RESULT, LOGS = "scenario.yaml", "steps.txt", "result.json", "logs"
FUNCTION = "nominee.lab.skew.cells.cell_run:play"
_START_SECONDS_MAX = 150.0
"""What a cell may take besides its scenario: the start of its cluster and the end."""
_STOP_SECONDS_MAX = 20.0
_LOG_BYTES_MAX = 8 << 20
_CLUSTER = "c"


def job(planned: PlannedCell) -> Job:
    """Return the job that plays a cell."""
    return Job(
        id=planned.id,
        function=FUNCTION,
        arguments=(planned.text, planned.simulated, planned.cell.programs),
        noun="cell",
        seconds_max=planned.timeout_seconds + _START_SECONDS_MAX,
        stop_seconds_max=_STOP_SECONDS_MAX,
        output=STEPS,
        own_temporary_files=planned.simulated,
        files=(f"{_CLUSTER}/{history_file.NAME}", f"{_CLUSTER}/logs/*.log"),
    )


def play(directory: Path, write: Write, text: str, simulated: bool, programs: Programs) -> None:
    """Play a cell in its process, with programs in the places of components; write the result."""
    file, cluster = directory / SCENARIO, directory / _CLUSTER
    file.write_text(text, encoding="utf-8")
    if simulated:
        from nominee.lab.skew.cells.simulated_cell import play

        write(play(file, cluster).as_json())
        return
    from nominee.lab.scenario.clusters.run_options import RunOptions
    from nominee.lab.scenario.format.reading import read_file
    from nominee.lab.scenario.format.replacing import adapt
    from nominee.lab.scenario.play.play import ended
    from nominee.lab.scenario.play.running import play_on_one_cluster

    (adapted,) = (adapt(each, programs) for each in read_file(file))
    if adapted.obstacle:
        write(ended(adapted.scenario, Outcome.SKIPPED, adapted.obstacle).as_json())
        return
    play_on_one_cluster(directory, write, [adapted.scenario], cluster, RunOptions(), to_stderr=True)


def keep(planned: PlannedCell, results: Sequence[Json], ended: Ended, target: Path) -> None:
    """Move a reader's files to a directory, which then has RESULT."""
    work, cluster = ended.directory, ended.directory / _CLUSTER
    result = _result(results, ended)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    (target / SCENARIO).write_text(planned.text, encoding="utf-8")
    for source in (work / STEPS, cluster / history_file.NAME):
        with suppress(FileNotFoundError):
            shutil.move(source, target / source.name)
    (target / LOGS).mkdir()
    for log in sorted(cluster.glob("logs/*.log")):
        shutil.copyfile(log, target / LOGS / log.name)
        os.truncate(target / LOGS / log.name, min(log.stat().st_size, _LOG_BYTES_MAX))
    document = {
        "id": planned.id,
        "digest": planned.digest,
        "version": version("nominee"),
        "simulated": planned.simulated,
        "commit": ended.commit,
        "result": result.as_json(),
    }
    write_atomically(target / RESULT, json.dumps(document).replace(f"{ended.ran_in}/", ""))


def _result(results: Sequence[Json], ended: Ended) -> ScenarioResult:
    try:
        (document,) = results
        return ScenarioResult.from_json(document)
    except (ValueError, KeyError, TypeError):
        problem = ended.problem or "the process of the cell left no result"
        reason = ": ".join([problem, *last_line(ended.directory / STEPS)])
        return ScenarioResult(scenario="", outcome=Outcome.ERROR, reason=reason)
