"""Workers as processes, from the side of the explorer: each has one cluster."""

from __future__ import annotations

import select
import subprocess
import sys
from contextlib import suppress

from nominee.lab.chaos.messages import Answer, Plan, Request
from nominee.localcluster.ending import end, kill
from nominee.localcluster.supervisor.children import before_exec

_STOP_SECONDS_MAX = 60.0


class WorkerError(Exception):
    """A worker ended, or did not answer in time; the message has the reason."""


class Worker:
    """A process with one cluster. Call `close` at the end."""

    def __init__(self, plan: Plan) -> None:
        self._process = subprocess.Popen(
            _command(plan),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
            preexec_fn=before_exec(),
        )
        self.directory = plan.directory
        self.is_usable = False
        """Whether another case can be run on its cluster: it is ready, and has answered all requests."""

    def wait_ready(self, seconds_max: float) -> None:
        """Wait until the cluster runs.

        Raises:
            WorkerError: it did not start.
        """
        self._answer(seconds_max)
        self.is_usable = True

    def run(self, request: Request, seconds_max: float) -> Answer:
        """Run a case.

        Raises:
            WorkerError: the worker ended, or needs longer.
        """
        assert self._process.stdin is not None
        self.is_usable = False
        try:
            self._process.stdin.write(request.to_json() + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._gone("the worker has ended") from None
        answer = self._answer(seconds_max)
        self.is_usable = answer.is_clean
        return answer

    def _answer(self, seconds_max: float) -> Answer:
        stdout = self._process.stdout
        assert stdout is not None
        if not select.select([stdout], [], [], seconds_max)[0]:
            raise self._gone(f"no answer within {seconds_max:g} s")
        line = stdout.readline()
        if not line:
            raise self._gone(f"the worker has ended with {self._process.wait(_STOP_SECONDS_MAX)}")
        answer = Answer.from_json(line)
        if answer.error:
            raise self._gone(answer.error)
        return answer

    def _gone(self, reason: str) -> WorkerError:
        self.is_usable = False
        return WorkerError(f"{reason}; its logs are in {self.directory}/logs")

    def close(self) -> None:
        """Stop the cluster, and wait for the process to end."""
        process = self._process
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=_STOP_SECONDS_MAX if self.is_usable else 1.0)
            end([process], _STOP_SECONDS_MAX)
        finally:
            kill(process)


def _command(plan: Plan) -> list[str]:
    return [sys.executable, "-P", "-m", "nominee.lab.chaos.worker", plan.to_json()]
