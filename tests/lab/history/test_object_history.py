"""The history of objects: their writers, events, log lines, and how they are printed."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from nominee.commands.measuring.history import history as command
from nominee.lab.history import object_history, process_logs
from nominee.lab.history.changes import changed_fields
from nominee.lab.history.etcd_observer import Coverage
from nominee.lab.history.history_file import NAME, HistoryWriter
from nominee.lab.history.object_history import Selection, Target, entries
from nominee.lab.history.process_logs import LogLine, lines_of, writers
from nominee.lab.history.writers import UNKNOWN, Writer, manager_of
from nominee.lab.timeline.page import page
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from tests.lab.invariants.histories import History, node, pod

LOG = [
    "I1114 22:13:20.000000 scheduler] Ready http=127.0.0.1:1",
    "D1114 22:13:21.500000 apiserver] Wrote verb=patch resource=pods/status object=default/a revision=3 "
    'user=system:kube-scheduler userAgent="kube-scheduler/1.36 (linux)"',
    # A patch that changes nothing has the revision of the write before it.
    "D1114 22:13:21.600000 apiserver] Wrote verb=patch resource=pods object=default/a revision=3 user=x",
    'I1114 22:13:21.700000 scheduler] Attempted pod=default/a result=Unschedulable message="0/1 nodes fit"',
    "I1114 22:13:21.800000 scheduler] Preempted preemptor=default/z victims=default/b,default/a node=n1",
    "I1114 22:13:21.900000 scheduler] Attempted pod=default/b result=Scheduled",
    "no line of klog",
]


def _managed(
    found: core.Pod, manager: str, seconds: int, *, fields: str = "{}", subresource: str = ""
) -> core.Pod:
    entry = found.metadata.managedFields.add(manager=manager, operation="Update", subresource=subresource)
    entry.time.seconds = seconds
    entry.fieldsV1.Raw = fields.encode()
    return found


def _event(about: str) -> core.Event:
    found = core.Event(reason="Scheduled", message="Assigned", reportingComponent="default-scheduler")
    found.metadata.name, found.metadata.namespace = f"{about}.1", "default"
    found.involvedObject.kind, found.involvedObject.apiVersion = "Pod", "v1"
    found.involvedObject.name, found.involvedObject.namespace = about, "default"
    return found


def _of(*names: str) -> Selection:
    return Selection([Target(kinds.POD, "", name) for name in names])


def _log() -> list[LogLine]:
    return list(lines_of(LOG, 2023))


def test_the_newer_entry_of_managed_fields_names_the_writer() -> None:
    first = _managed(pod("a"), "kubectl", 1)
    second = _managed(_managed(pod("a"), "kubectl", 1), "kubelet", 2, subresource="status")
    revisions = History().put(first, second).revisions
    assert [str(manager_of(each)) for each in revisions] == [
        "by manager kubectl (Update)",
        "by manager kubelet (Update status)",
    ]


def test_two_writes_of_a_manager_within_a_second_differ_in_their_fields() -> None:
    before = _managed(_managed(pod("a"), "kubelet", 2, fields='{"f:a":{}}'), "kubectl", 2)
    after = _managed(_managed(pod("a"), "kubelet", 2, fields='{"f:b":{}}'), "kubectl", 2)
    assert manager_of(History().put(before, after).revisions[1]).manager == "kubelet (Update)"


@pytest.mark.parametrize("after", [pod("a", node="n1"), _managed(pod("a", node="n1"), "kubectl", 1)])
def test_a_write_that_managed_fields_do_not_show_has_no_known_writer(after: core.Pod) -> None:
    before = pod("a")
    before.metadata.managedFields.extend(after.metadata.managedFields)
    revision = History().put(before, after).revisions[1]
    assert str(manager_of(revision)) == UNKNOWN


def test_a_deletion_has_no_known_writer() -> None:
    assert (
        manager_of(History().put(_managed(pod("a"), "kubectl", 1)).delete(pod("a")).revisions[1]) == Writer()
    )


def test_the_first_line_of_a_revision_names_its_writer() -> None:
    found = writers(_log())
    assert found == {
        3: Writer(
            user="system:kube-scheduler", verb="patch pods/status", client="kube-scheduler/1.36 (linux)"
        )
    }


def test_objects_are_interleaved_with_their_events_and_log_lines() -> None:
    changed = pod("a", nominated="n1")
    revisions = History().put(pod("a"), node("n1"), changed, pod("b"), _event("a"), _event("b")).revisions
    found = entries(revisions, _of("a"), _log())
    assert [
        entry.text if isinstance(entry, LogLine) else entry.event or entry.revision.subject for entry in found
    ] == [
        "scheduler: Ready http=127.0.0.1:1",
        "Pod default/a",
        "scheduler: Attempted pod=default/a result=Unschedulable message=0/1 nodes fit",
        "scheduler: Preempted preemptor=default/z victims=default/b,default/a node=n1",
        "Pod default/a",
        "Event of Pod default/a by default-scheduler: Scheduled: Assigned",
    ]


def test_a_namespace_has_all_its_objects_but_events_and_leases() -> None:
    revisions = History().put(pod("a"), node("n1"), _event("a")).revisions
    found = [
        each.revision.subject
        for each in entries(revisions, Selection(namespace="default"))
        if not isinstance(each, LogLine)
    ]
    assert found == ["Pod default/a"]


def test_since_leaves_out_what_was_before() -> None:
    revisions = History().put(pod("a"), pod("a", node="n1"), pod("a", node="n2")).revisions
    found = entries(revisions, Selection(since=revisions[1].time), _log())
    assert [each.time for each in found if not isinstance(each, LogLine)] == [
        each.time for each in revisions[1:]
    ]


def test_what_a_client_wrote_is_before_what_the_api_server_filled_in() -> None:
    created = pod("a")
    created.spec.volumes.add(name="kube-api-access-x2b4c")
    created.spec.tolerations.add(key="node.kubernetes.io/not-ready", operator="Exists")
    created.spec.restartPolicy, created.spec.priority = "Always", 7
    container = created.spec.containers.add(name="c", image="app", terminationMessagePolicy="File")
    container.volumeMounts.add(name="data", mountPath="/data")
    container.volumeMounts.add(name="kube-api-access-x2b4c", mountPath="/var/run/secrets")
    created.metadata.labels["app"] = "web"
    (revision,) = History().put(created).revisions
    changes = changed_fields(None, revision.object)
    paths = [each.path for each in changes if not each.path.startswith("status")]
    assert paths[:7] == [
        "spec.containers[c].name",
        "spec.containers[c].image",
        "spec.containers[c].volumeMounts[data].name",
        "spec.containers[c].volumeMounts[data].mountPath",
        "spec.priority",
        "metadata.labels.app",
        "spec.volumes[kube-api-access-x2b4c].name",
    ]
    assert {"spec.restartPolicy", "metadata.uid", "metadata.name"} < set(paths[6:])


def test_the_printed_history() -> None:
    revisions = History().put(pod("a"), pod("b"), pod("a", nominated="n1")).delete(pod("a")).revisions
    lines = list(object_history.lines(entries(revisions, _of("a"), _log())[-2:]))
    assert lines == [
        "revision 3, 2023-11-14T22:13:23.000000Z: Pod default/a updated, patch pods/status by "
        "system:kube-scheduler (kube-scheduler/1.36 (linux))",
        '    status.nominatedNodeName: "n1"',
        "revision 4, 2023-11-14T22:13:24.000000Z: Pod default/a deleted, writer unknown",
    ]


def _written(path: Path) -> Path:
    writer = HistoryWriter(path / NAME, Coverage())
    writer.append(History().put(pod("a"), pod("a", nominated="n1"), node("n1")).revisions)
    writer.close()
    return path / NAME


def _run(*arguments: str) -> tuple[int, str]:
    answer = CliRunner().invoke(command, arguments)
    return answer.exit_code, answer.stdout if answer.exit_code == 0 else answer.stderr


@pytest.mark.parametrize("name", ["pod/a", "po/default/a"])
def test_the_history_of_a_file_as_json(tmp_path: Path, name: str) -> None:
    status, text = _run(str(_written(tmp_path)), name, "-o", "json")
    assert status == 0, text
    created, updated = json.loads(text)["entries"]
    assert (created["change"], created["kind"], created["writer"]) == ("created", "Pod", None)
    assert updated["fields"] == [{"path": "status.nominatedNodeName", "old": None, "new": "n1"}]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["pod/other"], 1, "the history has no such object"),
        (["pod"], 2, "'pod' is no file, and not KIND/NAME"),
        (["stone/a"], 2, 'doesn\'t have a resource type "stone"'),
        (["--since", "soon"], 2, "--since: 'soon' is no duration"),
        (["--namespace", "other"], 1, "the history has no such object"),
        (["--html", "/nosuch/x.html"], 1, "/nosuch/x.html cannot be written: No such file or directory"),
    ],
)
def test_a_history_that_cannot_be_shown(
    tmp_path: Path, arguments: Sequence[str], status: int, message: str
) -> None:
    found, text = _run(str(_written(tmp_path)), *arguments)
    assert found == status
    assert message in text


def test_a_file_that_is_no_history(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("text")
    assert _run(str(tmp_path / "x")) == (2, f"Error: {tmp_path / 'x'} is no history of Nominee\n")


def test_the_command_names_file_and_objects() -> None:
    found = object_history.command("/d", ["Pod default/a", "Node n1"])
    assert found == "nominee history /d/history.gz Pod/default/a Node/n1"


def test_the_values_of_secrets_are_hidden_everywhere() -> None:
    applied = "kubectl.kubernetes.io/last-applied-configuration"

    def secret(value: bytes) -> core.Secret:
        found = core.Secret(data={"password": value})
        found.metadata.name, found.metadata.namespace = "s", "default"
        found.metadata.annotations.update({applied: value.decode(), "team": "web"})
        return found

    revisions = History().put(secret(b"hunter1"), secret(b"hunter2")).revisions
    found = entries(revisions, Selection(namespace="default"))
    shown = "\n".join(
        [*object_history.lines(found), json.dumps(object_history.as_json(found)), page("", found)]
    )
    assert "hunter" not in shown
    assert base64.b64encode(b"hunter1").decode() not in shown
    assert 'data.password: "(hidden)" -> "(hidden)"' in shown
    assert 'metadata.annotations.team: "web"' in shown


def test_a_long_log_is_read_from_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "scheduler.log"
    file.write_text("\n".join([*LOG, 'I1114 22:13:22.000000 scheduler] Last err="not yet']), encoding="utf-8")
    monkeypatch.setattr(process_logs, "_LOG_BYTES_MAX", 200)
    found = process_logs.read([file], 2023)
    assert [line.message for line in found] == ["Attempted", "Last"]
    assert found[-1].fields["err"] == '"not'


def test_revisions_that_are_never_shown_need_not_be_kept() -> None:
    revisions = History().put(pod("a"), pod("b"), node("n1"), _event("a"), _event("b")).revisions
    for selection in (_of("a"), Selection(namespace="default"), Selection()):
        kept = [revision for revision in revisions if selection.may_show(revision)]
        assert len(kept) < len(revisions)
        assert entries(kept, selection) == entries(revisions, selection)
