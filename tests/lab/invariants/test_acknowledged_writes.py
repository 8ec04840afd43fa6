"""No write that the API server has acknowledged is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nominee.lab.history.invariants.check import Result
from nominee.lab.history.invariants.checking.evidence import Acknowledged, ComponentSettings, Evidence
from nominee.lab.history.invariants.objects.acknowledged_writes import AcknowledgedWrites
from nominee.machinery.api import kinds
from tests.lab.invariants.histories import History, pod, result_of

SETTINGS = ComponentSettings(records_acknowledged=True)


def _write(revision: int, **changes: object) -> Acknowledged:
    first = Acknowledged(
        kind=kinds.POD, namespace="default", name="p", uid="uid-p", resource_version=revision
    )
    return replace(first, **changes)  # type: ignore[arg-type]


def _result(history: History, *writes: Acknowledged) -> Result:
    evidence = Evidence(now=history.now, acknowledged=writes)
    return result_of(AcknowledgedWrites, history, SETTINGS, evidence)


CREATED = History().put(pod("p"), pod("q"), pod("p", node="n1"))


@pytest.mark.parametrize("revision", [1, 3])
def test_a_write_that_etcd_has(revision: int) -> None:
    result = _result(CREATED, _write(revision))
    assert result.violations == ()
    assert result.checked == 1


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (_write(2), "etcd has no such write of the object"),
        (_write(4), "etcd has no such write of the object"),
        (_write(1, name="lost"), "etcd has no such write of the object"),
        (_write(1, uid="uid-2"), "acknowledged for uid uid-2, and etcd has the object with uid uid-p there"),
        (_write(0, deleted=True), "the deletion was acknowledged, and the object has no deletionTimestamp"),
    ],
)
def test_a_lost_write(write: Acknowledged, message: str) -> None:
    (violation,) = _result(CREATED, write).violations
    assert message in violation.message
    assert violation.objects == (f"Pod default/{write.name}",)


def test_a_deleted_object() -> None:
    deleted = History().put(pod("p")).delete(pod("p"))
    assert _result(deleted, _write(1), _write(0, deleted=True)).violations == ()
    again = History().put(pod("p")).delete(pod("p")).put(pod("p", uid="uid-2"))
    assert _result(again, _write(1), _write(3, uid="uid-2"), _write(0, deleted=True)).violations == ()
    (violation,) = _result(again, _write(3)).violations
    assert "etcd has the object with uid uid-2 there" in violation.message
    (violation,) = _result(deleted, _write(2)).violations
    assert "etcd has a deletion there" in violation.message


def test_a_terminating_object() -> None:
    terminating = History().put(pod("p"), pod("p", deletes_at=1_700_000_100.0))
    assert _result(terminating, _write(0, deleted=True)).violations == ()


def test_an_update_that_ends_a_terminating_object() -> None:
    ended = History().put(pod("p"), pod("p", deletes_at=1_700_000_100.0)).delete(pod("p"))
    assert _result(ended, _write(3)).violations == ()
    (violation,) = _result(ended, _write(3, uid="uid-2")).violations
    assert "etcd has a deletion there" in violation.message


def test_a_write_before_the_history_is_an_exception() -> None:
    history = History()
    history.next_revision = 10
    history.state(pod("p")).put(pod("q"))
    result = _result(history, _write(5), _write(10))
    assert result.violations == ()
    assert result.exceptions == {"before-history": 1}


def test_it_is_not_checked_without_a_record() -> None:
    unchecked = result_of(AcknowledgedWrites, CREATED, SETTINGS).unchecked
    assert unchecked == "no client recorded which writes were acknowledged"
