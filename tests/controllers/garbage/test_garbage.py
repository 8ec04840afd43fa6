"""Garbage as tables: pods, owners, namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from nominee.controllers.garbage.namespace_status import (
    RemainingContent,
    conditions,
    with_conditions,
    without_content_finalizer,
)
from nominee.controllers.garbage.ownership import (
    Action,
    Delete,
    DeleteDependents,
    DropFinalizer,
    DropReferences,
    OrphanDependents,
    Owner,
    decide,
)
from nominee.controllers.garbage.pod_gc import (
    Quarantine,
    fail,
    on_nodes,
    out_of_service,
    too_many_ended,
    unscheduled_terminating,
)
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import get_condition
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import to_time
from nominee.machinery.wire import codec
from tests.controllers.builders import EPOCH, condition, node, owned_by, pod

NOW = to_time(float(EPOCH))
SOLID, ABSENT, WAITING = Owner.SOLID, Owner.ABSENT, Owner.WAITING


def _names(pods: Sequence[core.Pod]) -> list[str]:
    return [p.metadata.name for p in pods]


# --- pods ---


@pytest.mark.parametrize(
    ("threshold", "gone"),
    [(0, []), (4, []), (3, ["evicted"]), (2, ["evicted", "oldest"]), (1, ["evicted", "oldest", "a"])],
)
def test_ended_pods_beyond_the_threshold_are_deleted_oldest_first(threshold: int, gone: list[str]) -> None:
    pods = [
        pod("b", uid="1", created=5, phase="Failed"),
        pod("a", uid="2", created=5, phase="Succeeded"),
        pod("oldest", uid="3", created=1, phase="Succeeded"),
        pod("evicted", uid="4", created=9, phase="Failed", reason="Evicted"),
        pod("running", uid="5", created=0, phase="Running"),
    ]
    assert _names(too_many_ended(pods, threshold)) == gone


def test_pods_that_end_without_a_kubelet() -> None:
    dead = node("dead", conditions=[condition("Ready", "Unknown")])
    dead.spec.taints.add(key="node.kubernetes.io/out-of-service", effect="NoExecute")
    lives = node("lives")
    lives.spec.taints.add(key="node.kubernetes.io/out-of-service", effect="NoExecute")
    pods = [
        pod("on dead", node="dead", deleted=True),
        pod("stays on dead", node="dead"),
        pod("on living", node="lives", deleted=True),
        pod("nowhere", deleted=True),
        pod("waits"),
        pod("on missing", node="missing", deleted=True),
    ]
    assert _names(out_of_service(pods, {"dead": dead, "lives": lives})) == ["on dead"]
    assert _names(unscheduled_terminating(pods)) == ["nowhere"]
    assert _names(on_nodes(pods, ["missing"])) == ["on missing"]


def test_a_missing_node_is_in_quarantine_first() -> None:
    quarantine, here = Quarantine(40.0), {"here"}
    named = ["here", "gone", "late"]
    assert quarantine.missing_nodes(named, here.__contains__, 0.0) == []
    here.add("late")
    assert quarantine.missing_nodes(named, here.__contains__, 39.0) == []
    here.remove("late")
    assert quarantine.missing_nodes(named, here.__contains__, 40.0) == ["gone"]
    assert quarantine.missing_nodes(named, here.__contains__, 79.0) == ["gone"]
    assert quarantine.missing_nodes(named, here.__contains__, 80.0) == ["gone", "late"]
    assert quarantine.missing_nodes([], here.__contains__, 81.0) == []
    assert quarantine.missing_nodes(["gone"], here.__contains__, 82.0) == []  # pods name it again


def test_a_pod_is_marked_failed_before_its_deletion() -> None:
    lost = pod(phase="Running")
    lost.metadata.generation = 2
    marked = fail(lost, NOW, node_gone=True)
    assert marked is not None
    assert (marked.status.phase, marked.status.observedGeneration) == ("Failed", 2)
    target = get_condition(marked.status.conditions, "DisruptionTarget")
    assert target is not None
    assert (target.reason, target.message) == ("DeletionByPodGC", "PodGC: node no longer exists")
    assert (target.observedGeneration, target.lastTransitionTime) == (2, NOW)
    other = fail(lost, NOW, node_gone=False)
    assert other is not None
    assert not other.status.conditions
    assert fail(pod(phase="Succeeded"), NOW, node_gone=True) is None
    assert lost.status.phase == "Running"


# --- owners ---


def _owned(*owners: str, finalizers: Sequence[str] = (), deleted: bool = False) -> core.Pod:
    of = pod("x", uid="x", owners=[owned_by(uid) for uid in owners], deleted=deleted)
    of.metadata.finalizers.extend(finalizers)
    return of


def _loose(owner: str) -> core.Pod:
    return pod("x", uid="x", owners=[owned_by(owner, block=False)])


BLOCKING = pod("d", owners=[owned_by("x")])
LOOSE = pod("d", owners=[owned_by("x", block=False)])
CIRCLE = pod("d", owners=[owned_by("x")], deleted=True)
CIRCLE.metadata.finalizers.append("foregroundDeletion")


@pytest.mark.parametrize(
    ("of", "dependents", "action"),
    [
        (_owned(), [], None),
        (_owned("solid"), [], None),
        (_owned("absent"), [], Delete("Background")),
        (_owned("absent", "absent2"), [], Delete("Background")),
        (_owned("solid", "absent"), [], DropReferences(frozenset({"absent"}))),
        (_owned("solid", "waiting"), [], DropReferences(frozenset({"waiting"}))),
        (_owned("waiting"), [], Delete("Background")),
        (_owned("waiting"), [BLOCKING], Delete("Foreground")),
        (_owned("waiting", "absent"), [BLOCKING], Delete("Foreground")),
        (_owned("waiting"), [CIRCLE], Delete("Foreground", unblock=True)),
        (_owned("waiting", "absent"), [BLOCKING, CIRCLE], Delete("Foreground", unblock=True)),
        (_loose("waiting"), [CIRCLE], Delete("Foreground")),
        (_owned("absent"), [CIRCLE], Delete("Background")),
        (_owned("absent", finalizers=["orphan"]), [], Delete("Orphan")),
        (_owned("absent", finalizers=["foregroundDeletion"]), [], Delete("Foreground")),
        (_owned("absent", deleted=True), [], None),
        (_owned(finalizers=["orphan"]), [BLOCKING], None),
        (_owned(finalizers=["orphan"], deleted=True), [BLOCKING], OrphanDependents()),
        (_owned(finalizers=["foregroundDeletion"], deleted=True), [BLOCKING], DeleteDependents()),
        (_owned(finalizers=["foregroundDeletion"], deleted=True), [LOOSE],
         DropFinalizer("foregroundDeletion")),
        (_owned(finalizers=["foregroundDeletion"], deleted=True), [], DropFinalizer("foregroundDeletion")),
        (_owned(finalizers=["other"], deleted=True), [BLOCKING], None),
    ],
)  # fmt: skip
def test_the_action_for_an_object_by_its_owners(of: core.Pod, dependents: list[Any], action: Action) -> None:
    def state(reference: Any) -> Owner:
        return {"solid": SOLID, "waiting": WAITING}.get(reference.uid, ABSENT)

    assert decide(of, state, dependents) == action


# --- namespaces ---


def _namespace(phase: str = "Terminating") -> core.Namespace:
    return codec.from_json(
        core.Namespace,
        {
            "metadata": {"name": "team"},
            "spec": {"finalizers": ["kubernetes", "mine"]},
            "status": {"phase": phase},
        },
    )


def _rows(namespace: core.Namespace) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in namespace.status.conditions}


def test_a_namespace_reports_its_remaining_content() -> None:
    rows = conditions({"pods.": 2, "configmaps.": 1}, {"x/y": 1})
    updated = with_conditions(_namespace(), rows, NOW)
    assert updated is not None
    found = {c.type: c for c in updated.status.conditions}
    assert _rows(updated) == {
        "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered"),
        "NamespaceDeletionGroupVersionParsingFailure": ("False", "ParsedGroupVersions"),
        "NamespaceDeletionContentFailure": ("False", "ContentDeleted"),
        "NamespaceContentRemaining": ("True", "SomeResourcesRemain"),
        "NamespaceFinalizersRemaining": ("True", "SomeFinalizersRemain"),
    }
    assert found["NamespaceContentRemaining"].message == (
        "Some resources are remaining: configmaps. has 1 resource instances, pods. has 2 resource instances"
    )
    assert with_conditions(updated, rows, NOW) is None
    emptied = with_conditions(updated, conditions({}, {}), NOW)
    assert emptied is not None
    assert _rows(emptied)["NamespaceContentRemaining"] == ("False", "ContentRemoved")
    assert _rows(emptied)["NamespaceFinalizersRemaining"] == ("False", "ContentHasNoFinalizers")


def test_a_failure_to_delete_is_reported() -> None:
    updated = with_conditions(_namespace(), conditions({"pods.": 1}, {}, "refused"), NOW)
    assert updated is not None
    assert _rows(updated)["NamespaceDeletionContentFailure"] == ("True", "ContentDeletionFailed")


def test_a_namespace_is_finalized_once() -> None:
    done = without_content_finalizer(_namespace())
    assert done is not None
    assert list(done.spec.finalizers) == ["mine"]
    assert without_content_finalizer(done) is None


def test_remaining_content_is_counted_and_looked_at_after_half_its_grace_period() -> None:
    left = RemainingContent()
    assert left.recheck_seconds() is None
    ending = pod("ending", node="n1", deleted=True)
    ending.metadata.deletionTimestamp.seconds = EPOCH + 20
    ending.metadata.finalizers.append("x/y")
    left.add(kinds.POD, pod("bare"), EPOCH)
    assert left.recheck_seconds() == 1
    left.add(kinds.POD, ending, EPOCH)
    assert left.recheck_seconds() == 10
    left.add(kinds.POD, pod("running", node="n1", terminationGracePeriodSeconds=60), EPOCH)
    assert left.recheck_seconds() == 15, "never more"
    left.fail("refused")
    left.fail("refused again")
    assert (dict(left.by_resource), dict(left.by_finalizer)) == ({"pods.": 3}, {"x/y": 1})
    found = {c.type: c for c in left.conditions()}
    assert found["NamespaceDeletionContentFailure"].message == "refused"
