"""No component removes a StatefulSet's pod whose containers run."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.check import Check
from nominee.lab.history.invariants.checking.answers import Answer, Method, Outcome
from nominee.lab.history.invariants.checking.checker import Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.workloads.unique_ordinals import UniqueOrdinals
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import core
from tests.lab.invariants.histories import History, node, pod


def member(
    *, runs: bool = True, phase: str = "Running", kind: str = "StatefulSet", grace: int = 30
) -> core.Pod:
    """Return a pod on n1."""
    found = pod("db-0", node="n1", phase=phase, allocated="1" if runs else "")
    found.spec.terminationGracePeriodSeconds = grace
    found.status.phase = phase
    found.metadata.ownerReferences.add(
        apiVersion="apps/v1", kind=kind, name="db", uid="uid-db", controller=True
    )
    return found


def ready_node(status: str = "True") -> core.Node:
    found = node("n1")
    found.status.conditions.add(type="Ready", status=status)
    return found


def check(
    history: History,
    *clients: str,
    outcome: Outcome = Outcome.DONE,
    earlier: int = 0,
    is_forced: bool = True,
) -> tuple[int, tuple[Violation, ...]]:
    """Return the number of checked removals and the violations; the last write answers all clients."""
    end = history.next_revision - 1 - earlier
    made = [deletion(client, outcome, end, is_forced=is_forced) for client in clients or ("kubelet-0",)]
    return answered(history, *made)


def deletion(
    client: str, outcome: Outcome, end: int, *, method: Method = Method.DELETE, is_forced: bool = True
) -> Answer:
    """Return the answer to a request which spans the revision `end`."""
    return Answer(
        client=client,
        method=method,
        outcome=outcome,
        kind=kinds.POD,
        namespace="default",
        name="db-0",
        begin=end - 1,
        end=end,
        is_forced=is_forced and method is Method.DELETE,
    )


def answered(history: History, *made: Answer) -> tuple[int, tuple[Violation, ...]]:
    """Return the number of checked removals, and the violations."""
    running = Check(ComponentSettings(observes_answers=True), [UniqueOrdinals.about.name])
    for revision in history.revisions:
        running.observe(revision)
    for answer in made:
        running.observe_answer(answer)
    (result,) = running.finish(Evidence(now=history.now))
    return result.checked, result.violations


def removed(of: core.Pod, *nodes: core.Node) -> History:
    return History().put(*(nodes or [ready_node()]), of).delete(of)


def test_a_pod_that_runs_is_removed() -> None:
    for client in ("kubelet-0", "controllers"):
        checked, (violation,) = check(removed(member()), client)
        assert checked == 1
        component = client.partition("-")[0]
        assert violation.message == (
            f"the {component} removed the pod while its containers ran on a node that is ready"
        )
    checked, violations = check(removed(member()).put(member()), earlier=1)
    assert (checked, len(violations)) == (1, 1)


@pytest.mark.parametrize(
    "history",
    [
        removed(member(runs=False)),
        removed(member(phase="Failed")),
        removed(member(grace=0)),
        removed(member(), ready_node("Unknown")),
        removed(member(), ready_node(), ready_node("False")),
        History().put(ready_node()).delete(ready_node()).put(member()).delete(member()),
    ],
    ids=["stopped", "ended", "without grace", "not ready", "not ready any more", "gone"],
)
def test_correct_removals(history: History) -> None:
    assert check(history) == (1, ())


def test_removals_that_are_not_checked() -> None:
    assert check(removed(member()), "user") == (0, ())
    assert check(removed(member()), "user", "controllers") == (1, ())
    # The client's answer comes last: it asked for the removal, too.
    assert check(removed(member()), "scheduler", "user") == (1, ())
    assert len(check(removed(member()), "scheduler", "user", is_forced=False)[1]) == 1
    assert check(removed(member(kind="ReplicaSet"))) == (0, ())
    assert check(removed(member()), outcome=Outcome.NOT_FOUND) == (0, ())
    assert check(removed(member()), earlier=1) == (0, ())


def forced(*finalizers: str) -> core.Pod:
    found = member()
    found.metadata.finalizers.extend(finalizers)
    found.metadata.deletionTimestamp.seconds = 1
    found.metadata.deletionGracePeriodSeconds = 0
    return found


REMOVED = deletion("controllers", Outcome.DONE, 4)


@pytest.mark.parametrize(
    ("client", "is_found"),
    [
        (deletion("user", Outcome.REFUSED, 4), False),
        (deletion("user", Outcome.NOT_FOUND, 4), False),
        (deletion("user", Outcome.REFUSED, 3), False),
        (deletion("user", Outcome.DONE, 4, method=Method.PATCH), False),
        (deletion("user", Outcome.DONE, 3, method=Method.PATCH), True),
        (deletion("user", Outcome.REFUSED, 4, method=Method.PATCH), True),
        (deletion("kubelet-0", Outcome.DONE, 3), True),
    ],
    ids=[
        "refused",
        "not found",
        "failed after its mark",
        "last finalizer",
        "before",
        "refused patch",
        "by a component",
    ],
)
def test_a_client_forces_a_pod_that_a_component_deletes(client: Answer, is_found: bool) -> None:
    history = History().put(ready_node(), member(), forced("example.com/x")).delete(forced("example.com/x"))
    assert bool(answered(history, client, REMOVED)[1]) is is_found
    assert bool(answered(history, REMOVED, client)[1]) is is_found


def test_a_client_that_writes_a_pod_does_not_remove_it() -> None:
    history = History().put(ready_node(), member(), member()).delete(member())
    _, violations = answered(history, deletion("user", Outcome.DONE, 4, method=Method.PATCH), REMOVED)
    assert len(violations) == 1
