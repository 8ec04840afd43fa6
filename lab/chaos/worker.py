"""`python -m nominee.lab.chaos.worker PLAN`: one cluster, on which the cases of standard input are run.

Lines of JSON: a Request in, an Answer out. It ends with the input, or after a case that
leaves the cluster unusable. A process of its own for each cluster: it starts processes, which a process that
has used gRPC must not do.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TextIO

import anyio
import anyio.to_thread

from nominee.lab.chaos.messages import Answer, Plan, Request
from nominee.lab.scenario.format.reading import read_file
from nominee.lab.scenario.play.narration import Narrator, Silent, TextNarrator
from nominee.lab.scenario.play.play import NotStartedError, started
from nominee.localcluster.output import INTERRUPTED
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import SystemClock


def main(text: str, requests: TextIO, answers: TextIO) -> int:
    """Start the cluster, and answer requests until they end."""
    plan = Plan(**json.loads(text))
    scenario = next(each for each in read_file(Path(plan.file)) if each.name == plan.name)
    logs.configure("chaos", stream=sys.stdout)
    narrate: Narrator = TextNarrator(SystemClock(), to_stderr=True) if plan.verbose else Silent()

    def answer(found: Answer) -> None:
        answers.write(found.to_json() + "\n")
        answers.flush()

    async def serve() -> None:
        # These import gRPC; the cluster is started before.
        from nominee.lab.chaos.disturbed_run import run_case
        from nominee.lab.scenario.clusters.real_cluster import RealCluster

        async with RealCluster.open(Path(plan.directory), scenario.cluster) as cluster:
            answer(Answer(ready=True))
            while line := await anyio.to_thread.run_sync(requests.readline):
                request = Request.from_json(line)
                ran = await run_case(scenario, request.case, cluster, narrate, request.undisturbed)
                answer(Answer.of(ran))
                if not ran.is_clean:
                    return

    try:
        with started(scenario.cluster, Path(plan.directory)):
            anyio.run(serve, backend_options={"use_uvloop": True})
    except NotStartedError as error:
        answer(Answer(error=f"the cluster did not start: {error}"))
        return 1
    return 0


def _own_output(directory: Path) -> TextIO:
    """Return standard output for the answers alone; what else is printed goes to D/logs/worker.log."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    log = directory / "logs" / "worker.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
    return answers


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], sys.stdin, _own_output(Path(json.loads(sys.argv[1])["directory"]))))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
