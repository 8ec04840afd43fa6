"""Every write has a higher resourceVersion than all writes before it."""

from __future__ import annotations

from dataclasses import replace

from nominee.lab.history.invariants.objects.resource_versions import ResourceVersions
from tests.lab.invariants.histories import History, pod, result_of, violations_of


def test_rising_revisions() -> None:
    history = History().state(pod("old")).put(pod("a"), pod("b")).delete(pod("a"))
    result = result_of(ResourceVersions, history)
    assert result.violations == ()
    assert result.checked == 3
    assert result.counts == {}


def test_a_revision_that_goes_back_is_a_violation() -> None:
    history = History().put(pod("a"), pod("b"), pod("c"))
    history.next_revision = 2
    (violation,) = violations_of(ResourceVersions, history.put(pod("d")))
    assert violation.revisions == (2, 3)
    assert violation.objects == ("Pod default/c", "Pod default/d")


def test_two_writes_of_a_key_at_one_revision_are_a_violation() -> None:
    history = History().put(pod("a"))
    history.next_revision = 1
    (violation,) = violations_of(ResourceVersions, history.put(pod("a", node="n1")))
    assert violation.revisions == (1,)


def test_keys_of_one_transaction_share_a_revision() -> None:
    history = History().put(pod("a"), pod("b"))
    history.next_revision = 2
    result = result_of(ResourceVersions, history.put(pod("c")))
    assert result.violations == ()
    assert result.exceptions == {"one-transaction": 1}


def test_missing_revisions_are_counted() -> None:
    history = History().put(pod("a"), pod("b"), pod("c"))
    del history.revisions[1]
    result = result_of(ResourceVersions, history)
    assert result.violations == ()
    assert result.counts == {"missing": 1}


def test_a_gap_is_not_counted_as_missing() -> None:
    history = History().put(pod("a"))
    history.next_revision = 50
    history.state(pod("b")).put(pod("c"))
    assert result_of(ResourceVersions, history).counts == {}
    assert replace(history.revisions[1]).is_state
