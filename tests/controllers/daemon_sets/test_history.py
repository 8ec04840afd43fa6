"""The revisions of a daemon set's template."""

from __future__ import annotations

from nominee.controllers.daemon_sets.history import History, digest_of
from nominee.controllers.revisions.history import data_of
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import apps
from tests.controllers.daemon_sets.builders import daemon_set


def _history(owner: apps.DaemonSet, *revisions: apps.ControllerRevision) -> History:
    return History.of(owner, data_of(owner.spec.template), revisions)


def _revision(owner: apps.DaemonSet, number: int) -> apps.ControllerRevision:
    revision = _history(owner).first(owner, data_of(owner.spec.template))
    revision.revision = number
    return revision


ONE, TWO = daemon_set(), daemon_set(image="agent:2")


def test_the_first_revision() -> None:
    history = _history(ONE)
    first = history.first(ONE, data_of(ONE.spec.template))
    assert (history.current, history.number, first.revision) == (None, 1, 1)
    assert first.metadata.name == f"agent-{digest_of(first)}"
    assert dict(first.metadata.labels) == {"app": "agent", "controller-revision-hash": digest_of(first)}
    assert _history(ONE, first).current is first


def test_a_changed_template_has_the_next_number_and_a_roll_back_too() -> None:
    first, second = _revision(ONE, 1), _revision(TWO, 2)
    assert (_history(TWO, first).current, _history(TWO, first).number) == (None, 2)
    back = _history(ONE, first, second)
    assert back.current is first
    assert (list(back.old), back.number) == ([second], 3)


def test_equal_bytes_are_not_needed() -> None:
    first = _revision(ONE, 1)
    metadata = b'"metadata":{'
    first.data.raw = first.data.raw.replace(metadata, metadata + b'"creationTimestamp":null,')
    assert _history(ONE, first).current is first


def test_of_several_for_one_template_the_latest_is_current() -> None:
    first, again = _revision(ONE, 1), _revision(ONE, 3)
    history = _history(ONE, again, first)
    assert history.current is again
    assert list(history.duplicates) == [first]


def test_another_hash_after_a_collision() -> None:
    collided = copy_of(ONE)
    collided.status.collisionCount = 1
    assert _revision(collided, 1).metadata.name != _revision(ONE, 1).metadata.name


def test_unused_revisions_beyond_the_limit_are_deleted() -> None:
    past = [_revision(daemon_set(image=f"agent:{number}"), number) for number in range(3, 7)]
    history = _history(ONE, _revision(ONE, 7), *past)
    assert history.to_delete((), 2) == past[:2]
    assert history.to_delete({digest_of(past[0])}, 2) == past[1:3]
    assert history.to_delete((), 4) == []
    assert history.to_delete((), 0) == past
