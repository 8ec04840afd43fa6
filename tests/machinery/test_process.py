"""A component's main program as a real process: readiness, signals, errors, death of the parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from nominee.machinery.process.component import Process, component_command
from nominee.machinery.process.run_files import RunFile, is_alive
from tests.support.eventually import eventually_sync
from tests.support.patience import PATIENCE_SECONDS

_ROOT = Path(__file__).resolve().parents[2]

COMPONENT = """
import sys, anyio, click
from nominee.machinery.runtime import failpoints
from nominee.machinery.process.component import BadConfiguration, Fatal, component_command

POINT = failpoints.declare("echo.step.before", "a step of a test")

@component_command("echo")
@click.option("--mode", default="")
def main(process, mode):
    async def body():
        if mode == "fatal":
            raise Fatal("no such mode")
        if mode == "refused":
            raise BadConfiguration("no such profile")
        await POINT.hit(pod="ns/p")
        async with anyio.create_task_group() as group:
            if mode == "bug":
                raise KeyError("bug")
            await process.announce(grpc="127.0.0.1:1")
            if mode == "deaf":
                await anyio.sleep_forever()
            if mode == "done":
                return
            await process.stopping.wait()
            if mode == "slow":
                await anyio.sleep_forever()
            print("drained", file=sys.stderr, flush=True)
    def check():
        if mode == "refused":
            raise BadConfiguration("no such profile")
    process.run(body, check=check, grace_seconds=0.3)

main()
"""
LIMIT_SECONDS = PATIENCE_SECONDS


class Started:
    def __init__(self, directory: Path, *arguments: str) -> None:
        self.directory = directory
        script = directory / "echo_component.py"
        script.write_text(COMPONENT, encoding="utf-8")
        self.stderr = directory / "stderr"
        with self.stderr.open("wb") as stderr:
            self.popen = subprocess.Popen(
                [sys.executable, str(script), "--dir", str(directory), *arguments],
                stderr=stderr,
                stdin=subprocess.DEVNULL,
            )

    def ready(self) -> RunFile:
        found: list[RunFile] = []

        def look() -> bool:
            file = RunFile.read(self.directory, "echo")
            if file is not None:
                found.append(file)
            assert self.popen.poll() is None, self.log
            return bool(found)

        eventually_sync(look)
        return found[0]

    @property
    def log(self) -> str:
        return self.stderr.read_text(encoding="utf-8")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    started: list[Started] = []

    def begin(*arguments: str) -> Started:
        started.append(Started(tmp_path, *arguments))
        return started[-1]

    yield begin
    for each in started:
        each.popen.kill()
        each.popen.wait(LIMIT_SECONDS)


def test_a_second_process_of_a_name_is_refused(start: Callable[..., Started]) -> None:
    first = start()
    first.ready()
    second = subprocess.run(
        [sys.executable, str(first.directory / "echo_component.py"), "--dir", str(first.directory)],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert second.returncode == 1
    assert f"echo runs already in {first.directory} (pid {first.popen.pid})" in second.stderr
    assert first.ready().pid == first.popen.pid
    start("--name", "other")
    eventually_sync(lambda: RunFile.read(first.directory, "other") is not None)


def test_a_killed_process_does_not_block_the_next(start: Callable[..., Started]) -> None:
    first = start()
    first.ready()
    first.popen.kill()
    first.popen.wait(LIMIT_SECONDS)
    assert RunFile.path(first.directory, "echo").exists()
    assert start().ready().pid != first.popen.pid


def test_feature_gates_given_several_times_are_merged(start: Callable[..., Started]) -> None:
    process = start(
        *("--feature-gates", "NominatedNodeNameForExpectation=false,SchedulerAsyncPreemption=true"),
        *("--feature-gates", "SchedulerAsyncPreemption=false"),
    )
    gates = process.ready().document["featureGates"]
    assert gates["NominatedNodeNameForExpectation"] is False
    assert gates["SchedulerAsyncPreemption"] is False


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ((), 0, ""),
        (("--mode", "bug"), 0, ""),  # the body is not begun
        (("--mode", "refused"), 2, "no such profile"),
        (("--feature-gates", "NoSuchGate=true"), 2, "unrecognized feature gate: NoSuchGate"),
    ],
)
def test_options_are_checked_without_starting(
    start: Callable[..., Started], arguments: tuple[str, ...], status: int, message: str
) -> None:
    start().ready()  # which is not in the way
    process = start("--check-options", *arguments)
    assert process.popen.wait(LIMIT_SECONDS) == status
    assert message in process.log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_drains_and_removes_the_run_file(start: Callable[..., Started], number: int) -> None:
    process = start("--emulated-version", "1.36", "--feature-gates", "NominatedNodeNameForExpectation=false")
    file = process.ready()
    assert (file.component, file.pid, file.grpc) == ("echo", process.popen.pid, "127.0.0.1:1")
    assert file.http.startswith("127.0.0.1:")
    assert file.document["emulatedVersion"] == "1.36"
    assert file.document["featureGates"]["NominatedNodeNameForExpectation"] is False
    process.popen.send_signal(number)
    assert process.popen.wait(LIMIT_SECONDS) == 0
    assert "drained" in process.log
    assert not RunFile.path(process.directory, "echo").exists()


@pytest.mark.parametrize("mode", ["deaf", "slow"])
def test_a_body_that_does_not_return_is_cancelled(start: Callable[..., Started], mode: str) -> None:
    process = start("--mode", mode)
    process.ready()
    process.popen.terminate()
    assert process.popen.wait(LIMIT_SECONDS) == 0
    assert ("Not stopped in time" in process.log) is (mode == "slow")


def test_a_body_that_returns_ends_the_process(start: Callable[..., Started]) -> None:
    process = start("--mode", "done")
    assert process.popen.wait(LIMIT_SECONDS) == 0
    assert not RunFile.path(process.directory, "echo").exists()


def test_an_error_is_logged_with_its_step(start: Callable[..., Started]) -> None:
    process = start("--mode", "bug")
    assert process.popen.wait(LIMIT_SECONDS) == 1
    assert "Failed step=start" in process.log
    assert "Traceback" in process.log


def test_a_fatal_error_is_one_line(start: Callable[..., Started]) -> None:
    process = start("--mode", "fatal", "--log-format", "json")
    assert process.popen.wait(LIMIT_SECONDS) == 1
    line = json.loads(process.log)
    assert (line["msg"], line["step"], line["component"]) == ("no such mode", "start", "echo")


def test_a_refused_configuration_is_like_a_wrong_option(start: Callable[..., Started]) -> None:
    process = start("--mode", "refused")
    assert process.popen.wait(LIMIT_SECONDS) == 2
    assert "no such profile" in process.log
    assert "Traceback" not in process.log


def test_a_failpoint_that_no_module_declares_is_refused(start: Callable[..., Started]) -> None:
    process = start("--failpoints", "echo.step.befor=crash")
    assert process.popen.wait(LIMIT_SECONDS) == 2
    assert "no failpoint echo.step.befor; there are echo.step.before" in process.log
    assert not RunFile.path(process.directory, "echo").exists()


def test_a_failpoint_of_the_command_line_kills(start: Callable[..., Started]) -> None:
    process = start("--failpoints", "echo.step.before=crash")
    assert process.popen.wait(LIMIT_SECONDS) == -signal.SIGKILL
    assert "Failpoint name=echo.step.before action=crash" in process.log
    assert "pod=ns/p" in process.log


def test_it_dies_with_its_parent(tmp_path: Path) -> None:
    """The parent is killed, and has no chance to clean up."""
    (tmp_path / "echo_component.py").write_text(COMPONENT, encoding="utf-8")
    script = "import subprocess, sys; subprocess.Popen([sys.executable, *sys.argv[1:]]).wait()"
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "echo_component.py"), "--dir", str(tmp_path)],
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually_sync(lambda: RunFile.read(tmp_path, "echo") is not None)
        file = RunFile.read(tmp_path, "echo")
        assert file is not None
        assert file.pid != parent.pid
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait(LIMIT_SECONDS)
    eventually_sync(lambda: not is_alive(file.pid))
    assert RunFile.path(tmp_path, "echo").exists()
    assert RunFile.read(tmp_path, "echo") is None, "a dead process's file is not believed"


def test_any_module_can_die_with_its_parent(tmp_path: Path) -> None:
    """A parent that may have used gRPC starts it without a fork (nominee.machinery.process.child)."""
    (tmp_path / "sleeper.py").write_text("import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    script = (
        "import subprocess; from nominee.machinery.process import child;"
        " subprocess.Popen(child.command('sleeper')).wait()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert parent.stdout is not None
        with parent.stdout as printed:
            sleeper = int(printed.readline())
        assert is_alive(sleeper)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait(LIMIT_SECONDS)
    eventually_sync(lambda: not is_alive(sleeper))


def test_only_processes_without_grpc_fork() -> None:
    """With a `preexec_fn`, `subprocess` forks; the supervisor and the relay of etcd load no gRPC."""
    files = [file for package in ("localcluster", "lab", "tests") for file in (_ROOT / package).rglob("*.py")]
    forks = {file for file in files if "preexec_fn=" in file.read_text(encoding="utf-8")}
    local = _ROOT / "localcluster"
    assert forks - {Path(__file__).resolve()} == {
        local / "supervisor" / "children.py",
        local / "etcd" / "relay.py",
    }


def test_one_function_ends_a_process_with_its_parent() -> None:
    packages = ("machinery", "apiserver", "scheduler", "kubelet", "controllers", "autoscaler", "nominee")
    files = [file for package in packages for file in (_ROOT / package).rglob("*.py")]
    calls = [file for file in files if "prctl" in file.read_text(encoding="utf-8")]
    assert calls == [_ROOT / "machinery" / "process" / "parent_death.py"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--emulated-version", "1.12"], "emulation version 1.12 is not between"),
        (["--feature-gates", "NoSuchGate=true"], "unrecognized feature gate: NoSuchGate"),
        (["--feature-gates", "A"], "missing bool value for A"),
        (["--failpoints", "a.b=explode"], "expected off, crash, error, sleep or pause"),
        (["--log-level", "loud"], "loud"),
    ],
)
def test_nonsense_is_a_usage_error(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("machinery.process.component.die_with_parent", lambda: None)

    @component_command("echo")
    def main(process: Process) -> None:
        raise AssertionError("must not run")

    outcome = CliRunner().invoke(main, arguments)
    assert outcome.exit_code == 2, outcome.output
    assert message in outcome.output.replace("\n", " ")


def test_a_run_file_of_another_process_is_left_alone(tmp_path: Path) -> None:
    from nominee.machinery.process import run_files

    run_files.write(tmp_path, "x", {"name": "x", "component": "x", "pid": os.getppid()})
    run_files.remove(tmp_path, "x", os.getpid())
    assert RunFile.read(tmp_path, "x") is not None
