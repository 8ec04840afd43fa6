"""The API server keeps an object's metadata."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.check import Check
from nominee.lab.history.invariants.checking.answers import Answer, Method, Outcome
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.objects.object_metadata import ObjectMetadata
from nominee.machinery.api import kinds
from nominee.machinery.api.pb import apps
from tests.lab.invariants.histories import BEGIN, History, pod, violations_of


def replica_set(
    *, replicas: int = 1, generation: int = 1, observed: int = 0, written_at: int = 0, deletes_at: float = 0.0
) -> apps.ReplicaSet:
    found = apps.ReplicaSet()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "web", "default", "uid-web"
    found.metadata.generation = generation
    found.metadata.managedFields.add(manager="m", operation="Update").time.seconds = 1_000_000 + written_at
    if deletes_at:
        found.metadata.deletionTimestamp.seconds = int(deletes_at)
    found.spec.replicas = replicas
    found.status.observedGeneration = observed
    return found


def _problems(history: History) -> list[str]:
    return [violation.message for violation in violations_of(ObjectMetadata, history)]


def test_usual_writes() -> None:
    ends = pod("p", deletes_at=BEGIN + 30, finalizers=["a", "b"])
    history = History().put(pod("p", finalizers=["a", "b"]), ends, pod("p", deletes_at=BEGIN + 30))
    history.delete(pod("p")).put(pod("p", uid="uid-2"))
    sets = [replica_set(), replica_set(observed=1), replica_set(replicas=2, generation=2, observed=1)]
    assert _problems(history.put(*sets)) == []


def test_a_deletion_may_remove_the_finalizers_of_garbage_collection() -> None:
    orphaning = replica_set()
    orphaning.metadata.finalizers.append("orphan")
    assert _problems(History().put(orphaning).delete(orphaning)) == []


@pytest.mark.parametrize(
    ("finalizer", "replicas", "problems"),
    [("foregroundDeletion", 1, 0), ("foregroundDeletion", 2, 2), ("a", 1, 1)],
)
def test_another_deletion_adds_the_finalizer_of_its_policy_alone(
    finalizer: str, replicas: int, problems: int
) -> None:
    first, second = replica_set(deletes_at=BEGIN), replica_set(deletes_at=BEGIN, replicas=replicas)
    first.metadata.finalizers.append("example.com/keep")
    second.metadata.finalizers.extend(["example.com/keep", finalizer])
    assert len(_problems(History().put(first, second))) == problems


@pytest.mark.parametrize(("writes", "problems"), [(0, 0), (3, 1)])
def test_a_deletion_that_is_under_way_does_not_see_a_finalizer(writes: int, problems: int) -> None:
    history = History().put(pod("p"), pod("p", finalizers=["a"]))
    history.put(*(pod(f"other-{number}") for number in range(writes))).delete(pod("p"))
    assert len(_problems(history)) == problems


@pytest.mark.parametrize(
    ("sent", "name", "problems"),
    [(0, "p", 0), (1, "p", 1), (0, "other-0", 1)],
    ids=["before", "after", "of another"],
)
def test_a_deletion_that_was_sent_before_the_finalizer_does_not_see_it(
    sent: int, name: str, problems: int
) -> None:
    """`sent` is the number of the pod's writes that the DELETE may have seen after its creation."""
    history = History().put(pod("p"), pod("p", finalizers=["a"]))
    history.put(*(pod(f"other-{number}") for number in range(3))).delete(pod("p"))
    running = Check(ComponentSettings(observes_answers=True), [ObjectMetadata.about.name])
    for revision in history.revisions:
        running.observe(revision)
    running.observe_answer(
        Answer(
            client="user",
            method=Method.DELETE,
            outcome=Outcome.DONE,
            kind=kinds.POD,
            namespace="default",
            name=name,
            begin=history.revisions[sent].revision,
            end=history.next_revision - 1,
        )
    )
    (result,) = running.finish(Evidence(now=history.now))
    assert len(result.violations) == problems


@pytest.mark.parametrize(
    ("history", "problem"),
    [
        (History().put(pod("p"), pod("p", uid="uid-2")), "the object has another uid or creationTimestamp"),
        (
            History().put(pod("p", deletes_at=BEGIN), pod("p")),
            "the object was deleted, and is not any more",
        ),
        (
            History().put(replica_set(deletes_at=BEGIN), replica_set(deletes_at=BEGIN + 9)),
            "the object was deleted, and its deletionTimestamp changed",
        ),
        (
            History().put(pod("p", deletes_at=BEGIN), pod("p", deletes_at=BEGIN, finalizers=["late"])),
            "the object was deleted, and got the finalizers late",
        ),
        (
            History().put(replica_set(), replica_set(observed=2)),
            "the status is of generation 2, and the object has generation 1",
        ),
        (
            History().put(replica_set(), replica_set(replicas=2, generation=3)),
            "the generation went from 1 to 3",
        ),
        (
            History().put(replica_set(), replica_set(replicas=2)),
            "the spec changed, and the generation is still 1",
        ),
        (
            History().put(replica_set(), replica_set(generation=2)),
            "the generation became 2, and the spec did not change",
        ),
        (
            History().put(pod("p", finalizers=["a"])).delete(pod("p")),
            "the object was removed at once, and had finalizers",
        ),
        (History().put(replica_set(), replica_set(written_at=9)), "the write changes nothing"),
    ],
    ids=lambda value: "" if isinstance(value, History) else value,
)
def test_writes_that_no_api_server_makes(history: History, problem: str) -> None:
    assert _problems(history) == [problem]
