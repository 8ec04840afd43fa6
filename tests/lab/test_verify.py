"""`nominee verify` on an etcd with objects of the test's own."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest
from aetcd import rpc
from click.testing import CliRunner
from google.protobuf.message import Message

from nominee.commands.measuring import verify as command
from nominee.lab.history.etcd_observer import Coverage
from nominee.lab.history.history_file import HistoryWriter
from nominee.lab.history.invariants.table import CHECKERS
from nominee.lab.history.verification import report, verification
from nominee.lab.history.verification.verification import Verification
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import key_of
from nominee.machinery.runtime.clock import SystemClock
from nominee.machinery.wire import envelope
from tests.lab.invariants.histories import History, node, pod
from tests.nominee.test_cli import nominee
from tests.support.etcd import ThrowawayEtcd
from tests.support.patience import PATIENCE_SECONDS

NAMES = [checker.about.name for checker in CHECKERS]


def _put(etcd: ThrowawayEtcd, *objects: Message) -> None:
    with grpc.insecure_channel(etcd.address) as channel:
        for obj in objects:
            key = kinds.of(obj).key(*key_of(obj)).encode()
            rpc.KVStub(channel).Put(
                rpc.PutRequest(key=key, value=envelope.encode(obj)), timeout=PATIENCE_SECONDS
            )


def _compact(etcd: ThrowawayEtcd, revision: int) -> None:
    with grpc.insecure_channel(etcd.address) as channel:
        rpc.KVStub(channel).Compact(rpc.CompactionRequest(revision=revision), timeout=PATIENCE_SECONDS)


def test_a_history_without_violation(own_etcd: ThrowawayEtcd) -> None:
    _put(own_etcd, node("n1"), pod("p"), pod("p", node="n1", conditions={"PodScheduled": ""}))
    answer = nominee("verify", directory=own_etcd.directory)
    assert answer.returncode == 0, answer.stderr
    rows = {line.split()[0]: line.split()[1:3] for line in answer.stdout.split("\n\n")[0].splitlines()}
    assert next(iter(rows)) == "INVARIANT"
    assert set(NAMES) <= set(rows)
    assert rows["one-node-per-pod"] == ["2", "0"]
    assert rows["acknowledged-writes-are-kept"] == ["-", "unchecked"]
    assert "3 writes were checked, up to revision 4" in answer.stdout
    assert "the history is complete" in answer.stdout


def test_the_history_of_an_etcd_that_is_down(own_etcd: ThrowawayEtcd) -> None:
    _put(own_etcd, node("n1"), pod("p"), pod("p", node="n1"))
    answer = nominee("history", "pod/p", directory=own_etcd.directory)
    assert answer.returncode == 0, answer.stderr
    heads = [line.split(": ")[1] for line in answer.stdout.splitlines() if not line.startswith(" ")]
    assert heads == ["Pod default/p created, writer unknown", "Pod default/p updated, writer unknown"]
    assert '    spec.nodeName: "n1"' in answer.stdout


def test_a_violation_shows_the_writes_that_violate(own_etcd: ThrowawayEtcd) -> None:
    _put(own_etcd, pod("p", node="n1"), pod("p", node="n2"))
    answer = nominee("verify", directory=own_etcd.directory)
    assert answer.returncode == 1
    assert "one-node-per-pod: the pod was bound to node 'n1' and is now bound to node 'n2'" in answer.stdout
    assert "objects: Pod default/p" in answer.stdout
    assert "revision 3, time unknown: Pod default/p updated" in answer.stdout
    assert 'spec.nodeName: "n1" -> "n2"' in answer.stdout

    of_one = nominee("verify", "-o", "json", "--invariant", "one-node-per-pod", directory=own_etcd.directory)
    assert of_one.returncode == 1
    document = json.loads(of_one.stdout)
    assert document["holds"] is False
    assert document["history"] == {"complete": True, "begin": 0, "end": 3, "gaps": [], "truncated": False}
    (result,) = document["invariants"]
    (violation,) = result["violations"]
    assert violation["revisions"] == [2, 3]
    assert violation["objects"] == ["Pod default/p"]

    others = [word for name in NAMES if name != "one-node-per-pod" for word in ("--invariant", name)]
    assert nominee("verify", *others, directory=own_etcd.directory).returncode == 0


def test_what_was_compacted_is_said(own_etcd: ThrowawayEtcd) -> None:
    _put(own_etcd, pod("p", node="n1"), pod("p", node="n2"), pod("p", node="n2", phase="Running"))
    _compact(own_etcd, 3)
    answer = nominee("verify", directory=own_etcd.directory)
    assert answer.returncode == 0
    assert "the history begins with the state at revision 3" in answer.stdout
    assert "the history is complete" not in answer.stdout


def test_a_history_file_is_read_before_etcd(own_etcd: ThrowawayEtcd) -> None:
    _put(own_etcd, pod("p", node="n1"), pod("p", node="n2"), pod("p", node="n1"))
    history = History(next_revision=2).put(pod("p", node="n1"))
    writer = HistoryWriter(own_etcd.directory / "history.gz", Coverage())
    writer.append(history.revisions)
    writer.close()
    _compact(own_etcd, 4)
    answer = nominee("verify", directory=own_etcd.directory)
    assert answer.returncode == 0
    assert "revisions 3 to 4 are missing" in answer.stdout
    writer = HistoryWriter(own_etcd.directory / "history.gz", Coverage())
    writer.append(history.put(pod("p", node="n2")).revisions[1:])
    writer.close()
    again = nominee("verify", directory=own_etcd.directory)
    assert again.returncode == 1
    assert "the history is complete" in again.stdout


def test_the_etcd_of_a_cluster_that_is_down_is_started_and_stopped(own_etcd: ThrowawayEtcd) -> None:
    _put(own_etcd, pod("p", node="n1"), pod("p", node="n2"))
    own_etcd.stop()
    (own_etcd.directory / "run" / "etcd.json").unlink(missing_ok=True)
    answer = nominee("verify", directory=own_etcd.directory)
    assert answer.returncode == 1, answer.stderr
    assert "2 writes were checked" in answer.stdout
    assert not (own_etcd.directory / "run" / "etcd.json").exists()
    own_etcd.start()


def test_without_a_history(tmp_path: Path) -> None:
    answer = nominee("verify", directory=tmp_path)
    assert answer.returncode == 2
    assert f"no etcd runs in {tmp_path}" in answer.stderr


def _history_file(path: Path) -> bytes:
    """Write a history of three writes, each in a member of its own; return the file's content."""
    writer = HistoryWriter(path, Coverage())
    for revision in History().put(pod("p", node="n1"), pod("p", node="n2"), pod("q")).revisions:
        writer.append([revision])
        writer.flush()
    writer.close()
    return path.read_bytes()


async def _verified(directory: Path) -> Verification:
    return await verification.verify(directory, SystemClock(), names=["one-node-per-pod"], is_running=False)


async def test_a_history_file_without_etcd(tmp_path: Path) -> None:
    _history_file(tmp_path / "history.gz")
    found = await _verified(tmp_path)
    text = "\n".join(report.coverage_lines(found.history))
    assert "3 writes were checked, up to revision 3\nthe history file has every write up to there; " in text
    assert "the history is complete" not in text
    assert not found.holds


async def test_a_history_file_that_was_cut_is_checked_as_far_as_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "history.gz"
    file.write_bytes(_history_file(file)[:-1])
    found = await _verified(tmp_path)
    text = "\n".join(report.coverage_lines(found.history))
    assert "2 writes were checked, up to revision 2\nthe history file ends after" in text
    assert "later writes are missing" in text
    assert not found.holds
    history = {"complete": False, "begin": 0, "end": 2, "gaps": [], "truncated": True}
    assert report.as_json(found)["history"] == history


def test_a_history_file_of_which_nothing_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "history.gz"
    file.write_bytes(_history_file(file)[:20])
    answer = nominee("verify", directory=tmp_path)
    assert answer.returncode == 2
    assert f"no write can be read from {file}: the history file ends after 0 bytes" in answer.stderr
    assert f"no etcd runs in {tmp_path}" in answer.stderr


@pytest.mark.parametrize("output", ["table", "json"])
def test_the_list(tmp_path: Path, output: str) -> None:
    answer = CliRunner().invoke(command.verify, ["--list", "-o", output, "--dir", str(tmp_path)])
    assert answer.exit_code == 0
    if output == "json":
        assert [each["name"] for each in json.loads(answer.stdout)] == NAMES
    else:
        assert [line for line in answer.stdout.splitlines() if not line.startswith(" ")] == NAMES
        assert "exception allocatable-shrank:" in answer.stdout
