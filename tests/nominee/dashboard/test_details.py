"""The details of an object: equal to those of `nominee history`, at each revision."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from nominee.commands.measuring.history import history as command
from nominee.dashboard import details
from nominee.dashboard.details import NotFoundError, Setting, target_of
from nominee.lab.history.etcd_observer import Coverage
from nominee.lab.history.history_file import NAME, HistoryWriter
from nominee.machinery.api.pb import core
from tests.lab.invariants.histories import History, event, node, pod

LOG = """\
I1114 22:13:20.000000 scheduler] Ready http=127.0.0.1:1
I1114 22:13:21.700000 scheduler] Attempted pod=default/a result=Unschedulable message="0/1 nodes fit"
D1114 22:13:23.500000 apiserver] Wrote verb=patch resource=pods/status object=default/a revision=3 user=me
I1114 22:13:24.800000 scheduler] Attempted pod=default/a result=Scheduled
"""


@pytest.fixture
def history(tmp_path: Path) -> History:
    """A history that is also a file with a log beside it."""
    big = pod("a", cpu="8")
    bound = pod("a", cpu="8", node="n1")
    found = History().put(node("n1"), big, pod("a", cpu="8", nominated="n1"), event("e", "X", big, note="y"))
    found.put(event("f", "X", pod("b")), bound).delete(bound)
    writer = HistoryWriter(tmp_path / NAME, Coverage())
    writer.append(found.revisions)
    writer.close()
    (tmp_path / "scheduler.log").write_text(LOG)
    return found


def printed(file: Path, name: str) -> list[str]:
    answer = CliRunner().invoke(command, [str(file), name])
    assert answer.exit_code == 0, answer.stderr
    return answer.stdout.splitlines()


@pytest.mark.parametrize("name", ["Pod/default/a", "Node/n1"])
def test_the_history_is_that_of_the_command(history: History, tmp_path: Path, name: str) -> None:
    lines = details.history(history.revisions, target_of(name), tmp_path)
    assert lines == printed(tmp_path / NAME, name)
    assert any("Event of Pod default/a" in line for line in lines) is name.startswith("Pod")


def test_each_revision_has_the_changes_of_the_command(history: History, tmp_path: Path) -> None:
    target, lines = target_of("Pod/default/a"), printed(tmp_path / NAME, "pod/a")
    for number in (2, 3, 6):
        found = details.detail(history.revisions, target, number, tmp_path)
        at = lines.index(found["name"])
        changes = [f"    {change}" for change in found["changes"]]
        assert lines[at + 1 : at + 1 + len(changes)] == changes
    nominated = details.detail(history.revisions, target, 5, tmp_path)
    assert nominated["writer"] == "patch pods/status by me (no user agent)"
    assert nominated["changes"] == ['status.nominatedNodeName: "n1"']
    assert '  "nominatedNodeName": "n1"' in "\n".join(nominated["object"])
    gone = details.detail(history.revisions, target, 7, tmp_path)
    assert (gone["changes"], gone["object"]) == ([], [])


@pytest.mark.parametrize("name", ["Pod/default/c", "Pod", "Pod/", "Thing/x", "Pod/a/b/c"])
def test_what_the_history_has_not_is_not_found(history: History, tmp_path: Path, name: str) -> None:
    with pytest.raises(NotFoundError):
        details.history(history.revisions, target_of(name), tmp_path)


def test_an_object_before_its_creation_is_not_found(history: History, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        details.detail(history.revisions, target_of("Pod/default/a"), 1, tmp_path)


def test_the_values_of_a_secret_are_hidden(tmp_path: Path) -> None:
    secret = core.Secret(data={"password": b"hunter2"})
    secret.metadata.name, secret.metadata.namespace = "s", "default"
    revisions, target = History().put(secret).revisions, target_of("Secret/default/s")
    found = details.detail(revisions, target, 1, tmp_path)
    assert "hidden" in str(found)
    shown = f"{found}{details.history(revisions, target, tmp_path)}"
    assert "aHVudGVyMg" not in shown
    assert "hunter2" not in shown


def test_decisions_end_at_the_moment(history: History, tmp_path: Path) -> None:
    target = target_of("Pod/default/a")
    (first,) = details.decisions(target, history.revisions[2].time, tmp_path)
    assert "result=Unschedulable" in first
    assert len(details.decisions(target, history.revisions[-1].time, tmp_path)) == 2
    assert details.decisions(target_of("Pod/default/b"), history.revisions[-1].time, tmp_path) == []


def test_the_verdict_is_that_of_the_moment(history: History) -> None:
    target = target_of("Pod/default/a")
    before = "\n".join(details.explain(history.revisions, target, 2, Setting("1.36")))
    assert "Insufficient cpu" in before
    (bound,) = details.explain(history.revisions, target, 6, Setting())
    assert "is already on node n1" in bound
    (gone,) = details.explain(history.revisions, target, 7, Setting())
    assert "there is no pod default/a" in gone
    (wrong,) = details.explain(history.revisions, target, 2, Setting(gates="Nonsense=true"))
    assert "Nonsense" in wrong
