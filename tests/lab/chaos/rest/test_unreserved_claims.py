"""The claims that a scheduler left allocated, found in the history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nominee.lab.chaos.rest.past.unreserved_claims import unreserved_claims
from nominee.lab.chaos.rest.workloads.reservations import resource_claims
from nominee.machinery.api.pb import devices
from tests.lab.chaos.rest.clusters import correct, put, state
from tests.lab.invariants.histories import History, pod


def _claim(*consumers: str, is_allocated: bool = True) -> devices.ResourceClaim:
    found = devices.ResourceClaim()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "gpu", "default", "uid-gpu"
    if is_allocated:
        found.status.allocation.SetInParent()
    for each in consumers:
        found.status.reservedFor.add(resource="pods", name=each, uid=f"uid-{each}")
    return found


WAITS, BOUND = pod("a"), pod("a", node="n1")


@pytest.mark.parametrize(
    ("history", "is_left"),
    [
        (History().put(WAITS, _claim("a"), _claim()), True),
        (History().put(WAITS, _claim("a")).delete(WAITS).put(_claim()), True),
        (History().put(BOUND, _claim("a"), _claim()), False),
        (History().put(WAITS, _claim("a"), BOUND, _claim()), False),
        (History().state(BOUND).state(_claim("a")).put(_claim()), False),
        (History().put(WAITS, _claim("a"), _claim("a", "b"), _claim("b")), False),
        (History().put(WAITS, BOUND, _claim("a"), _claim("a", "b"), _claim("a"), _claim()), False),
        (History().put(WAITS, _claim("a"), _claim(), _claim("a")), False),
        (History().put(WAITS, _claim("a"), _claim(), _claim(is_allocated=False)), False),
        (History().put(WAITS, _claim("a"), _claim(is_allocated=False)), False),
    ],
    ids=[
        "waits",
        "gone",
        "bound",
        "bound later",
        "bound before",
        "one left",
        "the last",
        "again",
        "freed",
        "free",
    ],
)
def test_a_reservation_that_was_taken_back_leaves_the_allocation(history: History, is_left: bool) -> None:
    assert unreserved_claims(history.revisions) == (frozenset({"uid-gpu"}) if is_left else frozenset())


def test_a_claim_that_was_left_by_unreserve_is_no_finding() -> None:
    manifests = correct()
    put("device/status/reservedFor", [])(manifests)
    assert list(resource_claims(state(manifests)))
    left = replace(state(manifests), unreserved_claims=frozenset({"ResourceClaim-gpu"}))
    assert list(resource_claims(left)) == []
