"""Commands on a component with several processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nominee.command_group import nominee
from nominee.localcluster.supervisor.clock import wait_until
from nominee.localcluster.supervisor.directory import process_letter
from nominee.machinery.process import run_files
from nominee.machinery.process.leading import MASTER_STATUS
from tests.support.patience import PATIENCE_SECONDS

_QUEUES = ("active", "backoff", "unschedulable", "gated", "waiting_on_permit", "binding")


@dataclass
class Answers:
    """A scheduler's answers; `leads` None is a process without leader election. `armed` has what was PUT."""

    name: str
    leads: bool | None
    armed: dict[str, str] = field(default_factory=dict)

    def get(self, path: str) -> str:
        if path == "/metrics":
            text = (
                f'{MASTER_STATUS}{{name="kube-scheduler"}} {self.leads:d}\n' if self.leads is not None else ""
            )
            return f"# TYPE {MASTER_STATUS} gauge\n{text}other 1\n"
        if path == "/failpoints":
            point = {"name": "scheduler.bind.before", "action": "", "hits": 0, "fired": 0, "waiting": 0}
            return json.dumps([point])
        return json.dumps({**dict.fromkeys(_QUEUES, ()), "active": [{"pod": f"default/of-{self.name}"}]})


@contextmanager
def serving(directory: Path, answers: Answers) -> Iterator[None]:
    """Serve the answers on a port of the loopback, with a run file."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(answers.get(self.path))

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            answers.armed[self.path] = body
            self._answer("")

        def _answer(self, text: str) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            return None

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"127.0.0.1:{server.server_port}"
            document = {"name": answers.name, "component": "scheduler", "pid": os.getpid(), "http": address}
            run_files.write(directory, answers.name, document)
            yield
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def schedulers(tmp_path: Path) -> Iterator[list[Answers]]:
    """Two schedulers, of which the second leads."""
    found = [Answers("scheduler-0", leads=False), Answers("scheduler-1", leads=True)]
    with ExitStack() as stack:
        for each in found:
            stack.enter_context(serving(tmp_path, each))
        yield found


def run(tmp_path: Path, *words: str) -> Result:
    return CliRunner().invoke(nominee, [*words, "--dir", str(tmp_path)])


@pytest.mark.parametrize(
    ("options", "shown", "said"),
    [
        ((), "default/of-scheduler-1", "scheduler-1 leads\n"),
        (("--scheduler", "scheduler-0"), "default/of-scheduler-0", ""),
        (("--scheduler", "kube-scheduler-1"), "default/of-scheduler-1", ""),
    ],
)
def test_the_queue_is_that_of_the_leader(
    tmp_path: Path, schedulers: list[Answers], options: tuple[str, ...], shown: str, said: str
) -> None:
    answer = run(tmp_path, "queue", *options)
    assert answer.exit_code == 0, answer.output
    assert shown in answer.stdout
    assert answer.stderr == said


def test_without_a_leader_a_standby_is_shown(tmp_path: Path, schedulers: list[Answers]) -> None:
    schedulers[1].leads = False
    answer = run(tmp_path, "queue", "-o", "json")
    assert [pod["pod"] for pod in json.loads(answer.stdout)["active"]] == ["default/of-scheduler-0"]
    assert answer.stderr == "warning: none of scheduler-0, scheduler-1 leads; this is scheduler-0\n"


def test_one_scheduler_need_not_lead(tmp_path: Path) -> None:
    with serving(tmp_path, Answers("scheduler", leads=None)):
        answer = run(tmp_path, "queue")
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert "default/of-scheduler" in answer.stdout


def test_a_failpoint_of_a_component_is_armed_in_each_process(
    tmp_path: Path, schedulers: list[Answers]
) -> None:
    answer = run(tmp_path, "failpoint", "scheduler", "scheduler.bind.before", "crash")
    assert answer.stdout.splitlines() == [
        "scheduler-0: scheduler.bind.before is crash",
        "scheduler-1: scheduler.bind.before is crash",
    ]
    assert [each.armed for each in schedulers] == [{"/failpoints/scheduler.bind.before": "crash"}] * 2
    only = run(tmp_path, "failpoint", "scheduler-1", "scheduler.bind.before", "off")
    assert only.stdout == "scheduler-1: scheduler.bind.before is off\n"
    assert schedulers[0].armed == {"/failpoints/scheduler.bind.before": "crash"}


def test_failpoints_are_listed_by_process(tmp_path: Path, schedulers: list[Answers]) -> None:
    rows = [line.split()[:2] for line in run(tmp_path, "failpoint", "scheduler").stdout.splitlines()]
    assert rows == [
        ["PROCESS", "NAME"],
        ["scheduler-0", "scheduler.bind.before"],
        ["scheduler-1", "scheduler.bind.before"],
    ]
    listed = json.loads(run(tmp_path, "failpoint", "scheduler-1", "-o", "json").stdout)
    assert [each["process"] for each in listed] == ["scheduler-1"]


@pytest.mark.parametrize("words", [("queue",), ("failpoint", "scheduler"), ("fault", "scheduler", "cut")])
def test_a_paused_process_is_not_waited_for(tmp_path: Path, words: tuple[str, ...]) -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            process.send_signal(signal.SIGSTOP)
            assert wait_until(lambda: process_letter(process.pid) == "T", PATIENCE_SECONDS)
            document = {
                "name": "scheduler",
                "component": "scheduler",
                "pid": process.pid,
                "http": "127.0.0.1:1",
            }
            run_files.write(tmp_path, "scheduler", document)
            answer = run(tmp_path, *words)
        finally:
            process.kill()
    assert answer.exit_code == 1
    assert "scheduler is paused and does not answer; `nominee resume scheduler --dir" in answer.stderr
