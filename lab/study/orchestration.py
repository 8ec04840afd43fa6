"""Run one job for each tracking option, and collect their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from nominee.lab.jobs.job import Ended, Executor, Job, Line
from nominee.lab.study.results import Results, decode
from nominee.lab.study.settings import Scenario, Tracking


class StudyError(RuntimeError):
    """A run failed; its own messages are above on standard error."""


def measure(
    directory: Path,
    trackings: Sequence[Tracking],
    scenarios: Sequence[Scenario],
    seeds: int,
    executor: Executor,
    *,
    quick: bool,
    say: Callable[[str], None],
) -> Results:
    """Return the results of all runs; on this machine each has its own cluster below `directory`.

    Raises:
        StudyError: a run failed.
        ExecutorError: the executor cannot run them.
    """

    def jobs() -> Iterator[Job]:
        for tracking in trackings:
            say(f"{tracking.value}: the cluster starts")
            cluster = directory / tracking.value if executor.is_local else None
            yield Job(
                id=tracking.value,
                function="nominee.lab.study.runner:run",
                arguments=(cluster, tracking, scenarios, seeds, quick),
                noun="run",
            )

    found: dict[str, list[dict[str, object]]] = {tracking.value: [] for tracking in trackings}
    with closing(executor.run(jobs())) as reports:
        for each in reports:
            if isinstance(each, Line):
                found[each.job.id].append(each.value)
            elif isinstance(each, Ended) and each.problem:
                raise StudyError(f"the run with tracking {each.job.id} failed: {each.problem}")
    return decode([document for documents in found.values() for document in documents])
