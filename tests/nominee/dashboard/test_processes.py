"""The state of processes as the page reads it, from the answers of their ports."""

from __future__ import annotations

from pathlib import Path

import pytest

from nominee.dashboard import processes
from nominee.localcluster.plan import UpOptions, build
from nominee.localcluster.supervisor.directory import StateDirectory, write_atomically
from nominee.machinery.process.serving_port.serving_client import ServingPort
from nominee.machinery.wire.values.scalars import Json

ANSWERS: dict[str, Json] = {
    "/debug/queue": {
        "active": [{"pod": "default/a", "attempts": 1, "plugins": [], "since": "2026-01-01T00:00:00Z"}],
        "unschedulable": [
            {"pod": "default/b", "attempts": 3, "plugins": ["NodeResourcesFit", "NodeAffinity"], "since": ""}
        ],
        "binding": [{"pod": "default/c", "node": "n1"}],
        "nominated": {"n2": ["default/b"]},
    },
    "/debug/groups": {
        "small": {"min": 0, "max": 3, "largest": 1, "target": 2, "instances": ["small-1", "small-2"]}
    },
    "/debug/loop": {
        "unneeded": ["small-1"],
        "unneededSeconds": {"small-1": 7.5},
        "unremovable": {"n1": "busy"},
    },
}


@pytest.fixture(autouse=True)
def _ports(monkeypatch: pytest.MonkeyPatch) -> None:
    def port(_: Path, process: str) -> ServingPort | None:
        return None if process == "gone" else ServingPort(process)

    monkeypatch.setattr(processes, "_port", port)
    monkeypatch.setattr(processes, "_get", lambda _, path: ANSWERS[path])


def test_the_queues() -> None:
    found = processes.queues(Path(), "scheduler", 1767225602.25)
    assert found["active"] == [{"pod": "default/a", "reason": "", "node": "", "seconds": 2.2, "attempts": 1}]
    assert found["unschedulable"][0]["reason"] == "NodeResourcesFit, NodeAffinity"
    assert found["unschedulable"][0]["seconds"] is None
    assert found["binding"][0]["node"] == "n1"
    assert found["gated"] == []
    assert found["nominated"] == [{"pod": "default/b", "reason": "", "node": "n2", "seconds": None}]


def test_an_instance_without_a_node_is_upcoming() -> None:
    found = processes.autoscaler(Path(), "autoscaler", {"small-1", "n1"})
    assert found["groups"] == [{"name": "small", "size": 2, "min": 0, "max": 3, "upcoming": 1}]
    assert found["upcoming"] == [{"node": "small-2", "group": "small", "seconds": None}]
    assert found["unneeded"] == [{"node": "small-1", "seconds": 7.5, "reason": ""}]
    assert found["unremovable"] == {"n1": "busy"}


def test_without_a_process_there_is_nothing_to_show() -> None:
    assert processes.queues(Path(), "gone", 0.0) is None
    assert processes.autoscaler(Path(), "gone", ())["unneeded"] == []


def test_the_processes_of_a_cluster_that_is_down(tmp_path: Path) -> None:
    assert processes.of_plan(tmp_path) == []
    options = UpOptions(
        directory=tmp_path,
        components=("etcd", "apiserver", "scheduler"),
        versions={"scheduler": "1.36"},
        gates={"scheduler": {"NominatedNodeNameForExpectation": False}},
        has_dashboard=True,
    )
    write_atomically(StateDirectory(tmp_path).plan, build(options).spec.to_json())
    found = {each["name"]: each for each in processes.of_plan(tmp_path)}
    assert list(found) == ["etcd", "apiserver", "scheduler", "dashboard"]
    assert found["scheduler"]["version"] == "1.36"
    assert found["scheduler"]["gates"] == {"NominatedNodeNameForExpectation": False}
    assert {each["state"] for each in found.values()} == {"down"}
    assert found["dashboard"]["version"] == ""
