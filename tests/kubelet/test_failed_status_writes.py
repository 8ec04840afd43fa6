"""Status writes that fail, or whose answers are lost: the times of the conditions in the next write."""

from __future__ import annotations

import pytest

from nominee.kubelet import instructions
from nominee.machinery.api import objects
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import to_time
from tests.kubelet.executor import NOW, container, new_pod, uid
from tests.kubelet.test_sync import Node, node, show


@pytest.mark.parametrize("cpu", ["1", "5"])
def test_a_status_whose_write_failed_keeps_its_times(cpu: str) -> None:
    """The failed write may have been carried out: the next one must not say another time."""
    pod = new_pod("a", container("main", cpu=cpu))
    here, at_once = node(), node(pod)
    here.failing = (instructions.PatchStatus,)
    show(here, pod)
    here.pass_time(2.0)
    here.work()
    here.failing = ()
    here.pass_time(2.0)
    here.work()
    assert here.api["a"].status == at_once.api["a"].status
    assert here.node.pods[uid("a")].sync.unanswered is None


def _gated(here: Node, value: str) -> None:
    """Let a user write the condition of the readiness gate of pod a; the kubelet sees it and works."""
    pod = core.Pod()
    pod.CopyFrom(here.api["a"])
    objects.set_condition(
        pod.status.conditions, core.PodCondition(type="example.com/go", status=value), to_time(here.now)
    )
    show(here, pod)


def _ready(here: Node) -> tuple[str, float]:
    """Return the status of the condition Ready of pod a, and the seconds since the start of the node."""
    row = objects.get_condition(here.api["a"].status.conditions, "Ready")
    assert row is not None
    return row.status, row.lastTransitionTime.seconds - NOW


def _with_gate() -> Node:
    pod = new_pod("a")
    pod.spec.readinessGates.add(conditionType="example.com/go")
    here = node(pod)
    _gated(here, "True")
    assert _ready(here) == ("True", 0)
    return here


def test_a_failed_write_that_is_not_needed_any_more_leaves_no_time() -> None:
    here = _with_gate()
    here.failing = (instructions.PatchStatus,)
    here.pass_time(10)
    _gated(here, "False")
    _gated(here, "True")
    here.failing = ()
    here.pass_time(3600)
    here.work()
    _gated(here, "False")
    assert _ready(here) == ("False", 3610)


def test_a_failed_write_has_no_time_for_a_later_change_of_another_client() -> None:
    here = _with_gate()
    here.failing = (instructions.PatchStatus,)
    here.pass_time(10)
    _gated(here, "False")
    pod = core.Pod()
    pod.CopyFrom(here.api["a"])
    here.pass_time(3500)
    objects.set_condition(
        pod.status.conditions, core.PodCondition(type="Ready", status="Unknown"), to_time(here.now)
    )
    here.failing = ()
    here.pass_time(90)
    show(here, pod)
    assert _ready(here) == ("False", 3600)
