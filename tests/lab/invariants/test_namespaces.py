"""A namespace is removed after its objects."""

from __future__ import annotations

from nominee.lab.history.invariants.objects.namespaces import Namespaces
from nominee.machinery.api.pb import core
from tests.lab.invariants.histories import History, pod, violations_of


def _namespace(*, ends: bool = False) -> core.Namespace:
    found = core.Namespace()
    found.metadata.name = "default"
    if ends:
        found.metadata.deletionTimestamp.seconds = 1
    return found


def test_a_namespace_is_removed_after_its_objects() -> None:
    history = History().put(_namespace(), pod("p"), _namespace(ends=True))
    history.delete(pod("p")).put(pod("late")).delete(_namespace(ends=True))
    assert violations_of(Namespaces, history) == []


def test_a_namespace_that_is_removed_before_its_objects() -> None:
    history = History().put(_namespace(), pod("p"), pod("q"), _namespace(ends=True))
    history.delete(pod("q")).delete(_namespace(ends=True))
    (violation,) = violations_of(Namespaces, history)
    assert violation.message == "the namespace was removed before Pod default/p"


def test_a_namespace_that_is_removed_at_once() -> None:
    (violation,) = violations_of(Namespaces, History().put(_namespace(), pod("p")).delete(_namespace()))
    assert violation.objects == ("Namespace default", "Pod default/p")
