"""Where the cases of an exploration run: on a cluster here, in simulations here, or as jobs elsewhere."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.observations import Undisturbed
from nominee.lab.chaos.messages import CaseAnswer, CaseRequest
from nominee.lab.chaos.worker import CLUSTER, in_simulation
from nominee.lab.jobs.directory import JobDirectory
from nominee.lab.jobs.job import Ended, Executor, Job, Line
from nominee.lab.jobs.process import JobError, JobProcess
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.play.simulation_running import between_runs
from nominee.machinery.runtime.clock import SystemClock
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    from nominee.lab.chaos.started_cluster import StartedCluster

START_SECONDS_MAX = 120.0
NAME_SIZE_MAX = 100
CASES_PER_CLUSTER_MAX = 40
"""A history grows, and its check with it."""
_NUMERIC_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""numpy would start a thread for each processor, and a process with threads does not fork."""
_SERVE, _SIMULATE = "nominee.lab.chaos.worker:serve", "nominee.lab.chaos.worker:simulate"


@dataclass(frozen=True, slots=True)
class Answered:
    """A case that was run, and how long it took."""

    case: Case
    answer: CaseAnswer
    seconds: float


class Clusters(Protocol):
    """Clusters of one scenario. `count` is how many were started."""

    count: int

    def run(
        self, cases: Iterable[Case], undisturbed: Undisturbed, seed: int, *, rules_only: bool = False
    ) -> Generator[Answered, None, None]:
        """Run cases; yield each when it has ended, with `answer.error` if it could not be run.

        `rules_only` as of ExplorationSettings.

        The next case is taken from the iterable when there is room for it.

        Raises:
            ExecutorError: no case can be run.
        """
        ...

    def keep(self) -> str:
        """Return the directory in which the files of the last case that was yielded are kept, or ""."""
        ...

    def close(self) -> None:
        """Stop the clusters."""
        ...


class RealClusters:
    """Clusters of real processes on this machine; one is used again as long as its cases are clean."""

    def __init__(
        self, scenario: Scenario, base: Path, *, keep_all: bool = False, verbose: bool = False
    ) -> None:
        self._scenario, self._base = scenario, base
        self._keep_all, self._verbose = keep_all, verbose
        self._worker: _Worker | None = None
        self.count = 0

    def run(
        self, cases: Iterable[Case], undisturbed: Undisturbed, seed: int, *, rules_only: bool = False
    ) -> Generator[Answered, None, None]:
        """Run cases one after another; real processes do not use the seed."""
        clock = SystemClock()
        for case in cases:
            began = clock.monotonic()
            try:
                request = CaseRequest(case=case, undisturbed=undisturbed, rules_only=rules_only)
                answer = self._run(request)
            except JobError as error:
                logs = f"its logs are in {self._worker.directory}/logs" if self._worker else ""
                answer = CaseAnswer(error=f"{error}; {logs}")
            yield Answered(case, answer, clock.monotonic() - began)

    def _run(self, request: CaseRequest) -> CaseAnswer:
        """Run a case. Raises: JobError."""
        worker = self._worker
        if worker is None or not worker.is_usable or worker.cases >= CASES_PER_CLUSTER_MAX:
            self.close()
            self.count += 1
            directory = self._base / f"{self.count:03}"
            self._worker = worker = _Worker(self._scenario, directory, verbose=self._verbose)
            worker.wait_ready()
        return worker.run(request, _case_seconds_max(self._scenario))

    def keep(self) -> str:
        """Stop the cluster, and keep its files."""
        return self._stop(keep=True)

    def close(self) -> None:
        """Stop the cluster, and remove its files."""
        self._stop(keep=self._keep_all)

    def _stop(self, *, keep: bool) -> str:
        worker, self._worker = self._worker, None
        if worker is None:
            return ""
        worker.close()
        if not keep:
            shutil.rmtree(worker.directory, ignore_errors=True)
        return str(worker.directory) if keep else ""


class _Worker:
    """A process with one cluster; it answers requests as long as it `is_usable`. Call `close` at the end."""

    def __init__(self, scenario: Scenario, directory: Path, *, verbose: bool) -> None:
        self.directory, self.cases, self.is_usable = directory, 0, False
        self._job_directory = JobDirectory.make()
        job = Job(
            id=directory.name, function=_SERVE, arguments=(scenario, directory, (), verbose), noun="worker"
        )
        self._process = JobProcess(job, self._job_directory.path, talks=True)

    def wait_ready(self) -> None:
        """Wait until the cluster runs. Raises: JobError."""
        self._checked(self._process.receive(START_SECONDS_MAX))
        self.is_usable = True

    def run(self, request: CaseRequest, seconds_max: float) -> CaseAnswer:
        """Run a case. Raises: JobError."""
        self.cases += 1
        self.is_usable = False
        answer = self._checked(self._process.ask(request.to_json(), seconds_max))
        self.is_usable = answer.is_clean
        return answer

    def _checked(self, value: Json) -> CaseAnswer:
        answer = CaseAnswer.from_json(value)
        if answer.error:
            raise JobError(answer.error)
        return answer

    def close(self) -> None:
        """Stop the cluster, and wait for the process to end."""
        try:
            self._process.leave(self._process.job.stop_seconds_max if self.is_usable else 1.0)
        finally:
            try:
                self._process.close()
            finally:
                self._job_directory.remove()


class SimulatedClusters:
    """Simulations on this machine: the same case and seed give the same run.

    The first one is in this process, which then has all that does not depend on a case. The cluster of a seed
    starts once for the others, if this process can fork.
    """

    def __init__(self, scenario: Scenario, base: Path, *, verbose: bool = False) -> None:
        self._scenario, self._base, self._verbose = scenario, base, verbose
        self._started: StartedCluster | None = None
        self._last: Path | None = None
        self.count = 0

    def run(
        self, cases: Iterable[Case], undisturbed: Undisturbed, seed: int, *, rules_only: bool = False
    ) -> Generator[Answered, None, None]:
        """Run cases one after another in simulations of this seed."""
        for name in _NUMERIC_THREADS:
            os.environ.setdefault(name, "1")
        clock = SystemClock()
        for case in cases:
            self.count += 1
            began = clock.monotonic()
            self._last = directory = self._base / name_of(self.count, case)
            try:
                request = CaseRequest(case=case, undisturbed=undisturbed, rules_only=rules_only)
                answer = self._run(request, seed, directory)
                yield Answered(case, answer, clock.monotonic() - began)
            finally:
                if self._last is not None:
                    shutil.rmtree(self._last, ignore_errors=True)

    def _run(self, request: CaseRequest, seed: int, directory: Path) -> CaseAnswer:
        # These import the components.
        from nominee.lab.chaos.perturbing import first_start
        from nominee.lab.chaos.started_cluster import StartedCluster, can_fork

        options = first_start(self._scenario.cluster, request.case, request.undisturbed.launches)
        if self.count == 1 or options != self._scenario.cluster or not can_fork():
            answer = in_simulation(self._scenario, request, seed, directory, verbose=self._verbose)
            between_runs()  # within a run nothing is collected
            return answer
        if self._started is None or not self._started.serves(seed):
            self.close()
            self._started = StartedCluster(self._scenario, seed, verbose=self._verbose)
        return self._started.run(request, directory)

    def keep(self) -> str:
        """Keep the history and the log of the last simulation; return their directory."""
        directory, self._last = self._last, None
        return str(directory) if directory is not None and directory.is_dir() else ""

    def close(self) -> None:
        """End the process in which a cluster has started."""
        if self._started is not None:
            self._started.close()
            self._started = None


class JobClusters:
    """Each case is a job, with a cluster of its own or a simulation; an executor runs several at a time."""

    def __init__(self, scenario: Scenario, executor: Executor, base: Path, *, simulate: bool) -> None:
        self._scenario, self._executor, self._base, self._simulate = scenario, executor, base, simulate
        self._ended: tuple[Case, Path] | None = None
        self.count = 0

    def run(
        self, cases: Iterable[Case], undisturbed: Undisturbed, seed: int, *, rules_only: bool = False
    ) -> Generator[Answered, None, None]:
        """Run cases at the same time.

        Raises:
            ExecutorError: no case can be run.
        """
        answers: dict[str, CaseAnswer] = {}
        running: dict[str, Case] = {}

        def jobs() -> Generator[Job, None, None]:
            for case in cases:
                self.count += 1
                request = CaseRequest(case=case, undisturbed=undisturbed, rules_only=rules_only)
                job = self._job(request, seed)
                running[job.id] = case
                yield job

        with closing(self._executor.run(jobs())) as reports:
            for each in reports:
                if isinstance(each, Line):
                    answers[each.job.id] = CaseAnswer.from_json(each.value)
                elif isinstance(each, Ended):
                    answer = answers.pop(each.job.id, CaseAnswer(ready=True))
                    if not answer.error and answer.result is None:
                        answer = CaseAnswer(error=each.problem or "the case left no result")
                    case = running.pop(each.job.id)
                    self._ended = case, each.directory / CLUSTER
                    yield Answered(case, answer, each.seconds)

    def _job(self, request: CaseRequest, seed: int) -> Job:
        name = f"{self.count:03}"
        if self._simulate:
            return Job(
                id=name,
                function=_SIMULATE,
                arguments=(self._scenario, request, seed),
                noun="case",
                stop_seconds_max=0.0,
                files=(f"{CLUSTER}/*.gz", f"{CLUSTER}/*.log"),
            )
        return Job(
            id=name,
            function=_SERVE,
            arguments=(self._scenario, None, [request], False),
            noun="case",
            seconds_max=START_SECONDS_MAX + _case_seconds_max(self._scenario),
            files=(f"{CLUSTER}/*.gz", f"{CLUSTER}/logs/*.log"),
        )

    def keep(self) -> str:
        """Copy the files that were sent to a directory of this machine, and return it."""
        if self._ended is None or not self._ended[1].is_dir():
            return ""
        case, directory = self._ended
        target = self._base / name_of(len(list(self._base.glob("*"))) + 1, case)
        shutil.copytree(directory, target)
        return str(target)

    def close(self) -> None:
        """Do nothing: the executor has ended the jobs."""


def name_of(number: int, case: Case) -> str:
    """Return the name of the directory of a finding: a number, and the case in letters of file names."""
    text = re.sub(r"[^A-Za-z0-9.@=-]+", "-", str(case) or "undisturbed")
    return f"{number:03}-{text[:NAME_SIZE_MAX]}"


def _case_seconds_max(scenario: Scenario) -> float:
    return scenario.timeout_seconds * 3 + START_SECONDS_MAX
