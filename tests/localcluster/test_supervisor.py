"""The supervisor with real processes (fake components) and real signals."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from nominee.localcluster.supervisor.clock import monotonic, wait_until
from nominee.localcluster.supervisor.commands.client import NotRunningError, RefusedError
from nominee.localcluster.supervisor.commands.socket_path import reachable
from nominee.localcluster.supervisor.directory import (
    InUseError,
    StateDirectory,
    acquire_lock,
    clean_stale,
    lock_holder,
    process_letter,
)
from nominee.localcluster.supervisor.model.core import Policy
from nominee.localcluster.supervisor.one_shot import OneShot, Outcome
from tests.localcluster.supervised import (
    LIMIT_SECONDS,
    STAGES,
    all_gone,
    cluster_file,
    is_in_cluster_file,
    kill,
    start,
    supervised,
    write_plan,
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_everything_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with supervised(tmp_path) as cluster:
        described = cluster.call("wait")["cluster"]
        assert described["ready"]
        assert cluster_file(tmp_path) == described
        pids = cluster.pids()
        assert set(pids) == set(STAGES)
        status, output = cluster.end(number)
        assert status == 0
        assert all_gone(pids)
    assert (tmp_path / "order").read_text().split() == ["autoscaler", "scheduler", "apiserver", "etcd"]
    assert not (tmp_path / "cluster.json").exists()
    assert output.splitlines()[0].split()[:2] == ["etcd", "ready"]
    assert "nominee status" in output


def test_nohup_keeps_a_closed_terminal_away(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which a child process inherits
    try:
        with supervised(tmp_path) as cluster:
            cluster.call("wait")
            cluster.process.send_signal(signal.SIGHUP)
            assert cluster.call("status")["ok"]
            assert not cluster.call("status")["cluster"]["closing"]
    finally:
        signal.signal(signal.SIGHUP, before)


def test_sigkill_leaves_no_process_not_even_a_paused_one(tmp_path: Path) -> None:
    with supervised(tmp_path) as cluster:
        cluster.call("wait")
        cluster.call("pause", component="scheduler")
        pids = cluster.pids()
        assert process_letter(pids["scheduler"]) == "T"
        cluster.end(signal.SIGKILL)
        assert all_gone(pids)
        state = StateDirectory(tmp_path)
        assert lock_holder(state) is None
        with pytest.raises(NotRunningError):
            cluster.call("status")
        lock = acquire_lock(state)
        assert clean_stale(state, {}) == sorted(STAGES)
        os.close(lock)
        assert not list((tmp_path / "run").glob("*.json"))
        assert not (tmp_path / "cluster.json").exists()


def test_sigkill_during_the_start_leaves_no_process(tmp_path: Path) -> None:
    """Also right after fork, before the child could ask for the parent's death signal."""
    write_plan(tmp_path, dict.fromkeys(STAGES, ()), Policy())
    process = start(tmp_path)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    pids: list[int] = []

    def has_children() -> bool:
        pids[:] = map(int, children.read_text().split())
        return bool(pids)

    assert wait_until(has_children, LIMIT_SECONDS, poll_seconds=0.0)
    process.kill()
    process.communicate()
    assert all_gone({str(pid): pid for pid in pids})
    assert all_gone({name: document["pid"] for name, document in StateDirectory(tmp_path).run_files()})


def test_a_killed_component_comes_back_with_a_growing_delay(tmp_path: Path) -> None:
    with supervised(tmp_path) as cluster:
        cluster.call("wait")
        for restarts in (1, 2):
            before = cluster.pids()
            kill(before["scheduler"])
            cluster.wait_component("scheduler", restarts=restarts, state="ready", lastExit="SIGKILL")
            after = cluster.pids()
            pid = after["scheduler"]
            assert pid != before.pop("scheduler")
            assert before.items() < after.items()
            written = partial(is_in_cluster_file, tmp_path, pid)
            assert wait_until(written, LIMIT_SECONDS)
        _, output = cluster.end()
    assert "scheduler died (SIGKILL); starts again in 0.1 s" in output
    assert output.count("scheduler is ready") == 2


def test_restart_never_leaves_it_down(tmp_path: Path) -> None:
    with supervised(tmp_path, policy=Policy(restart=False)) as cluster:
        cluster.call("wait")
        kill(cluster.pids()["scheduler"])
        cluster.wait_component("scheduler", state="crashed", pid=None, restarts=0)
        answer = cluster.call("start", component="scheduler")
        assert [c["state"] for c in answer["components"]] == ["ready"]


def test_stop_start_restart_pause_resume(tmp_path: Path) -> None:
    with supervised(tmp_path) as cluster:
        cluster.call("wait")
        pid = cluster.pids()["scheduler"]
        assert cluster.call("stop", component="scheduler")["components"][0]["state"] == "down"
        assert all_gone({"scheduler": pid})
        assert "grpc" not in cluster.components()["scheduler"]
        assert cluster.call("start", component="scheduler")["components"][0]["state"] == "ready"
        pid = cluster.pids()["scheduler"]
        answer = cluster.call("restart", component="scheduler", kill=True)["components"][0]
        assert (answer["state"], answer["lastExit"], answer["restarts"]) == ("ready", "SIGKILL", 1)
        assert answer["pid"] != pid
        log = cluster.state.log_file("supervisor").read_text()
        assert re.findall(r"Process state=(\w+) name=scheduler", log) == ["down", "ready", "killed", "ready"]
        cluster.call("pause", component="scheduler")
        assert process_letter(answer["pid"]) == "T"
        assert cluster.call("resume", component="scheduler")["components"][0]["pid"] == answer["pid"]
        assert process_letter(answer["pid"]) != "T"
        with pytest.raises(RefusedError, match="this cluster has no 'kubelet-7'"):
            cluster.call("stop", component="kubelet-7")
        with pytest.raises(RefusedError, match="unknown command 'dance'"):
            cluster.call("dance")


def test_who_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    behaviour = {"etcd": (), "scheduler": ("ignore-term",)}
    with supervised(tmp_path, behaviour, Policy(stop_grace=0.2)) as cluster:
        cluster.call("wait")
        answer = cluster.call("stop", component="scheduler")["components"][0]
        assert (answer["state"], answer["lastExit"]) == ("down", "SIGKILL")


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    behaviour = {"etcd": (), "scheduler": ("ignore-term",)}
    with supervised(tmp_path, behaviour, Policy(stop_grace=3600.0)) as cluster:
        cluster.call("wait")
        pids = cluster.pids()
        cluster.process.send_signal(signal.SIGINT)
        assert wait_until(lambda: (tmp_path / "order").exists(), LIMIT_SECONDS)
        status, _ = cluster.end(signal.SIGINT)
        assert status == 0
        assert all_gone(pids)


def test_refused_options_end_the_start_with_the_reason(tmp_path: Path) -> None:
    with supervised(tmp_path, {"etcd": (), "scheduler": ("refuse",)}) as cluster:
        output, _ = cluster.process.communicate(timeout=LIMIT_SECONDS)
        assert cluster.process.returncode == 1
    assert "a component does not start: scheduler" in output
    assert "no such option: --frobnicate" in output


def test_not_ready_in_time_ends_the_start(tmp_path: Path) -> None:
    behaviour = {"etcd": (), "scheduler": ("never-ready",)}
    with supervised(tmp_path, behaviour, ready_seconds_max=1.0) as cluster:
        with pytest.raises(RefusedError, match="not ready in time"):
            cluster.call("wait")
        output, _ = cluster.process.communicate(timeout=LIMIT_SECONDS)
        assert cluster.process.returncode == 1
    assert "scheduler is starting" in output
    assert not (tmp_path / "cluster.json").exists()


def test_down_by_command_answers_when_all_are_gone(tmp_path: Path) -> None:
    with supervised(tmp_path) as cluster:
        cluster.call("wait")
        pids = cluster.pids()
        cluster.call("down")
        assert not any(process_letter(pid) not in ("", "Z") for pid in pids.values())
        assert cluster.process.wait(timeout=LIMIT_SECONDS) == 0


def test_one_directory_one_cluster(tmp_path: Path) -> None:
    with supervised(tmp_path) as cluster:
        cluster.call("wait")
        second = start(tmp_path)
        output, _ = second.communicate(timeout=LIMIT_SECONDS)
        assert second.returncode == 1
        assert f"a cluster already runs in {tmp_path} (pid {cluster.process.pid})" in output
        assert cluster.call("status")["cluster"]["ready"]


def test_processes_without_a_supervisor_are_not_replaced(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    state.run.mkdir(parents=True)
    process = subprocess.Popen(["sleep", "60"])
    try:
        # The kernel shows the new program's arguments a moment after exec has returned to us.
        assert wait_until(lambda: b"60" in Path(f"/proc/{process.pid}/cmdline").read_bytes(), LIMIT_SECONDS)
        state.run_file("scheduler").write_text(f'{{"component": "scheduler", "pid": {process.pid}}}')
        with pytest.raises(InUseError, match=rf"scheduler \(pid {process.pid}\)"):
            clean_stale(state, {"scheduler": "sleep"})
        # The same pid under another program: the number was given to someone else.
        assert clean_stale(state, {"scheduler": "some.other.program"}) == ["scheduler"]
    finally:
        process.kill()
        process.wait()


def test_garbage_on_the_socket_is_answered_and_a_long_path_works(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 100) / ("e" * 100)
    with supervised(directory) as cluster, reachable(directory / "run" / "supervisor.sock") as short:
        cluster.call("wait")
        for line in (b"hello\n", b"[1]\n", b'"status"\n'):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(short)
                connection.sendall(line)
                assert b"a request is one line of JSON" in connection.recv(4096)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(short)
            connection.sendall(b"x" * 70_000)
            with pytest.raises(ConnectionError):
                raise ConnectionError if connection.recv(4096) == b"" else AssertionError
        assert cluster.call("status")["cluster"]["ready"]


def test_options_are_checked_without_touching_what_runs(tmp_path: Path) -> None:
    with supervised(tmp_path) as cluster:
        cluster.call("wait")
        before = cluster.pids()
        with pytest.raises(RefusedError, match=r"scheduler rejects these options:\n.*--frobnicate"):
            cluster.call("check", component="scheduler", arguments=["refuse"])
        with pytest.raises(RefusedError, match="this cluster has no 'kubelet'; it has etcd"):
            cluster.call("check", component="kubelet", arguments=[])
        assert cluster.call("check", component="scheduler", arguments=["ignore-term"])["ok"]
        assert cluster.pids() == before


def test_arguments_for_good_stay_when_a_restart_has_others(tmp_path: Path) -> None:
    def words() -> list[str]:
        return Path(f"/proc/{cluster.pids()['scheduler']}/cmdline").read_bytes().decode().split("\0")

    with supervised(tmp_path) as cluster:
        cluster.call("wait")
        with pytest.raises(RefusedError, match="this cluster has no 'kubelet'"):
            cluster.call("extend", component="kubelet", arguments=["--adopt"])
        for _ in range(2):
            assert cluster.call("extend", component="scheduler", arguments=["first", "second"])["ok"]
        assert "first" not in words()
        cluster.call("stop", component="scheduler")
        cluster.call("start", component="scheduler")
        assert words()[-3:-1] == ["first", "second"]
        cluster.call("restart", component="scheduler", arguments=["third"])
        assert words()[-4:-1] == ["first", "second", "third"]
        assert (tmp_path / "run" / "plan.json").read_text(encoding="utf-8").count('"second"') == 1


def test_a_restart_with_options_that_are_refused_leaves_it_down(tmp_path: Path) -> None:
    with supervised(tmp_path) as cluster:
        cluster.call("wait")
        with pytest.raises(RefusedError, match="scheduler is crashed, last exit code 2"):
            cluster.call("restart", component="scheduler", arguments=["refuse"])
        cluster.wait_component("scheduler", state="crashed", pid=None)
        assert cluster.call("start", component="scheduler", arguments=[])["components"][0]["state"] == "ready"


@pytest.mark.processes
def test_the_lines_of_a_program_are_read_while_it_runs(tmp_path: Path) -> None:
    text = (
        "import sys, time, pathlib; print('one', flush=True); print('tw', end='', flush=True)\n"
        f"while not pathlib.Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.01)\n"
        "print('o', flush=True); sys.exit('Error: three')"
    )
    lines: list[str] = []
    program = OneShot([sys.executable, "-c", text], {}, monotonic, seconds_max=LIMIT_SECONDS)

    def has_read() -> bool:
        assert program.poll() is None
        lines.extend(program.new_lines())
        return bool(lines)

    assert wait_until(has_read, LIMIT_SECONDS)
    (tmp_path / "go").touch()
    outcomes: list[Outcome | None] = [None]

    def has_ended() -> bool:
        outcomes.append(program.poll())
        return outcomes[-1] is not None

    assert wait_until(has_ended, LIMIT_SECONDS)
    assert lines == ["one"]
    assert outcomes[-1] == Outcome(False, "one\ntwo\nError: three", "two\nError: three")
