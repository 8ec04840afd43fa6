"""The cluster of a command: what is shown if it does not start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nominee.localcluster.own_cluster import ClusterStartError, cluster
from nominee.localcluster.supervisor.directory import StateDirectory, lock_holder
from nominee.localcluster.up_options.kept_options import KeptOptions

pytestmark = pytest.mark.processes


def test_no_process_writes_to_a_pipe_that_is_not_read(tmp_path: Path) -> None:
    """A full pipe would block the process that writes."""
    with cluster(tmp_path, [], "etcd"):
        state = StateDirectory(tmp_path)
        pids = {name: document["pid"] for name, document in state.live_run_files().items()}
        pids["up"] = lock_holder(state) or 0
        outputs = {
            (name, number): os.readlink(f"/proc/{pid}/fd/{number}")
            for name, pid in pids.items()
            for number in (1, 2)
        }
    assert outputs == {
        ("etcd", 1): f"{tmp_path}/logs/etcd.log",
        ("etcd", 2): f"{tmp_path}/logs/etcd.log",
        ("up", 1): os.devnull,
        ("up", 2): f"{tmp_path}/logs/up.log",
    }


def test_it_has_the_options_of_its_command_only(tmp_path: Path) -> None:
    kept = KeptOptions({}, {"replicas": {"etcd": 3}})
    kept.write(tmp_path)
    with cluster(tmp_path, [], "etcd"):
        assert list(StateDirectory(tmp_path).live_run_files()) == ["etcd"]
    assert KeptOptions.read(tmp_path) == kept


def test_the_error_has_the_end_of_what_was_reported(tmp_path: Path) -> None:
    def start() -> None:
        with cluster(tmp_path / "d", ["--replicas", "controllers=2"]):
            raise AssertionError("it must not start")

    with pytest.raises(ClusterStartError, match="controllers=2: at most 1") as first:
        start()
    with pytest.raises(ClusterStartError) as second:
        start()
    assert str(second.value) == str(first.value)  # the log of the first start is not repeated
    assert "controllers=2" in (tmp_path / "d" / "logs" / "up.log").read_text(encoding="utf-8")
