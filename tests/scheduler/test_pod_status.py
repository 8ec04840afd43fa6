"""The status patch is what client-go would have made (examples as a real 1.36.2 scheduler sent them)."""

from __future__ import annotations

import json

import pytest

from nominee.machinery.api.objects import set_condition
from nominee.machinery.api.pb import core
from nominee.machinery.patch.strategic_diff import diff_strategic
from nominee.machinery.patch.strategic_merge import strategic_merge_patch
from nominee.machinery.runtime.clock import parse_rfc3339, to_time
from nominee.machinery.wire import codec
from nominee.scheduler.framework.interface import NominatingInfo, NominatingMode
from nominee.scheduler.pod_status import note, status_patch
from tests.scheduler.builders import pod

NOW = parse_rfc3339("2026-11-21T02:31:24Z")
POD = core.Pod.DESCRIPTOR.full_name


def nominate(node: str) -> NominatingInfo:
    return NominatingInfo(NominatingMode.Override, node)


def pending(*conditions: tuple[str, str, str, str], nominated: str = "") -> core.Pod:
    """A pod of generation 1 with conditions (type, status, reason, message)."""
    made = pod("vip", nominated=nominated).pod
    made.metadata.generation = 1
    for type_, status, reason, message in conditions:
        row = core.PodCondition(
            type=type_, status=status, reason=reason, message=message, observedGeneration=1
        )
        row.lastTransitionTime.CopyFrom(to_time(NOW - 60))
        made.status.conditions.append(row)
    return made


def test_preemption_as_on_the_wire() -> None:
    patch = status_patch(
        pending(),
        nominate("n1"),
        reason="Unschedulable",
        message="0/1 nodes are available: 1 Insufficient cpu.",
        now=NOW,
    )
    assert patch == json.loads(
        '{"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":"2026-11-21T02:31:24Z","message":'
        '"0/1 nodes are available: 1 Insufficient cpu.","observedGeneration":1,"reason":"Unschedulable",'
        '"status":"False","type":"PodScheduled"}],"nominatedNodeName":"n1"}}'
    )


def test_nomination_and_clearing_as_on_the_wire() -> None:
    assert status_patch(pending(), nominate("n1")) == {"status": {"nominatedNodeName": "n1"}}
    assert status_patch(pending(nominated="n1"), nominate("")) == {"status": {"nominatedNodeName": None}}


@pytest.mark.parametrize(
    ("nominated", "wanted"), [("", ""), ("n1", "n1")], ids=["nothing to clear", "there already"]
)
def test_nothing_to_do(nominated: str, wanted: str) -> None:
    assert status_patch(pending(nominated=nominated), nominate(wanted)) is None


def test_the_same_failure_again_is_no_patch() -> None:
    found = pending(("PodScheduled", "False", "Unschedulable", "m"))
    assert status_patch(found, None, reason="Unschedulable", message="m", now=NOW) is None


@pytest.mark.parametrize(
    "conditions",
    [
        (),
        (("PodScheduled", "False", "Unschedulable", "before"),),
        (("PodScheduled", "True", "", ""),),
        (("PodScheduled", "False", "SchedulingGated", "m"), ("Other", "True", "", "")),
        (("Other", "True", "", ""),),
    ],
    ids=str,
)
def test_it_is_the_diff_of_the_two_states(conditions: tuple[tuple[str, str, str, str], ...]) -> None:
    before = pending(*conditions)
    patch = status_patch(before, nominate("n2"), reason="Unschedulable", message="m", now=NOW)
    after = core.Pod()
    after.CopyFrom(before)
    after.status.nominatedNodeName = "n2"
    row = core.PodCondition(
        type="PodScheduled", status="False", reason="Unschedulable", message="m", observedGeneration=1
    )
    set_condition(after.status.conditions, row, to_time(NOW))
    before_json, after_json = codec.to_json(before), codec.to_json(after)
    assert patch is not None
    assert patch["status"] == diff_strategic(POD, before_json, after_json)["status"]
    merged = codec.from_json(core.Pod, strategic_merge_patch(POD, before_json, patch))
    assert merged == codec.from_json(core.Pod, after_json)


def test_before_1_34_no_generation_is_observed() -> None:
    patch = status_patch(pending(), None, reason="X", message="m", now=NOW, observed_generation=False)
    assert patch is not None
    assert "observedGeneration" not in patch["status"]["conditions"][0]


@pytest.mark.parametrize("text", ["x" * 1024, "short"])
def test_a_note_that_fits_is_left(text: str) -> None:
    assert note(text) == text


@pytest.mark.parametrize("text", ["x" * 1025, "é" * 600])
def test_a_long_note_is_cut(text: str) -> None:
    assert len(note(text).encode()) <= 1024
    assert note(text).endswith(" ...")
