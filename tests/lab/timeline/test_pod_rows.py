"""The rows of pods from their bytes are those of the decoded pods."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from nominee.lab.timeline import pod_rows
from nominee.lab.timeline.pod_rows import pod_row
from nominee.lab.timeline.rows import row
from nominee.machinery.api.kinds import POD
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import to_time
from nominee.machinery.wire import envelope
from tests.lab.invariants.histories import node, pod


def _owned(found: core.Pod) -> None:
    found.metadata.ownerReferences.add(kind="Node", name="other")
    found.metadata.ownerReferences.add(kind="ReplicaSet", name='web "1"', controller=True)


def _large(found: core.Pod) -> None:
    found.spec.nodeSelector["x"] = "y" * 70_000


def _waiting(found: core.Pod) -> None:
    found.spec.schedulingGates.add(name="wait")
    found.status.conditions.add(type="PodScheduled", status="False", reason="SchedulingGated", message="ü\n")


@pytest.mark.parametrize("change", [lambda _: None, _owned, _large, _waiting])
@pytest.mark.parametrize(
    "found",
    [pod("a"), pod("a", node="n1", cpu="2", phase="Running"), pod("a", nominated="n1", priority=5)],
    ids=["waits", "runs", "nominated"],
)
def test_the_row_of_stored_bytes_is_that_of_the_pod(
    found: core.Pod, change: Callable[[core.Pod], None]
) -> None:
    made = core.Pod()
    made.CopyFrom(found)
    change(made)
    assert json.loads(pod_row(envelope.encode(made))) == row(made)


def _managed(found: core.Pod) -> None:
    found.metadata.managedFields.add(manager="kubectl")


def _deleted(found: core.Pod) -> None:
    found.metadata.deletionTimestamp.CopyFrom(to_time(5.0))


@pytest.mark.parametrize("change", [_managed, _deleted])
def test_a_pod_whose_metadata_show_more_is_decoded(change: Callable[[core.Pod], None]) -> None:
    found = pod("a")
    change(found)
    assert pod_row(envelope.encode(found)) == ""


def test_other_bytes_are_left_to_the_decoder() -> None:
    raw = pod("a").SerializeToString()
    twice = raw + core.Pod(spec=core.PodSpec(nodeName="n1")).SerializeToString()
    for data in (
        b"garbage",
        envelope.encode(node("a")),
        envelope.wrap(POD, raw[:-1]),
        envelope.wrap(POD, twice),
        envelope.wrap(POD, b"\x0a"),
        envelope.wrap(POD, b"\x0a\x03abc\x12\x00\x1a\x00"),
        envelope.wrap(POD, b""),
    ):
        assert pod_row(data) == "", data


def test_a_spec_and_a_status_are_decoded_once() -> None:
    pod_rows._body.cache_clear()
    names = [json.loads(pod_row(envelope.encode(pod(name, node="n7", cpu="3"))))["uid"] for name in "abc"]
    assert names == ["uid-a", "uid-b", "uid-c"]
    assert pod_rows._body.cache_info().misses == 1
