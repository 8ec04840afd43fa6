"""A device is allocated to one claim, which keeps it while pods use it."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.claims.device_claims import DeviceClaims
from nominee.machinery.api.pb import devices
from tests.lab.invariants.histories import History, leader, pod, result_of, violations_of

SETTINGS = ComponentSettings(lists_newest=frozenset({"scheduler"}))


def claim(
    name: str,
    device: str = "",
    *,
    pods: tuple[str, ...] = (),
    admin: bool = False,
    share: str = "",
    driver: str = "gpu.example.com",
) -> devices.ResourceClaim:
    """Return a claim with a device, reserved for pods."""
    found = devices.ResourceClaim()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = name, "default", f"uid-{name}"
    if device:
        result = found.status.allocation.devices.results.add(driver=driver, pool="n1", device=device)
        result.adminAccess, result.shareID = admin, share
    for user in pods:
        found.status.reservedFor.add(resource="pods", name=user, uid=f"uid-{user}")
    return found


BOUND = pod("p", node="n1")


@pytest.mark.parametrize(
    "history",
    [
        History().put(claim("a"), claim("a", "d1"), claim("b"), claim("b", "d2")),
        History().put(claim("a", "d1"), claim("a"), claim("b", "d1")),
        History().put(claim("a", "d1")).delete(claim("a", "d1")).put(claim("b", "d1")),
        History().put(claim("a", "d1"), claim("b", "d1", driver="nic.example.com")),
        History().put(claim("a", "d1"), claim("b", "d1", admin=True)),
        History().put(claim("a", "d1", share="s1"), claim("b", "d1", share="s2")),
        History().put(pod("p"), claim("a", "d1", pods=("p",)), claim("a", "d1")),
        History().put(BOUND, claim("a", "d1", pods=("p",))).delete(BOUND).put(claim("a"), claim("b", "d1")),
        History().put(BOUND, claim("a", "d1", pods=("p",)), pod("p", node="n1", phase="Failed"), claim("a")),
        History().put(claim("a", "d1", pods=("p",)), BOUND),
        History().put(BOUND).delete(BOUND).put(claim("a", "d1", pods=("p",))),
        History().state(pod("q")).put(claim("a", "d1", pods=("p",))),
    ],
    ids=[
        "two devices",
        "deallocated",
        "deleted",
        "another driver",
        "admin access",
        "shares",
        "unreserved before binding",
        "the pod is gone",
        "the pod has ended",
        "the pod comes later",
        "the pod is gone already",
        "the pod is older than the history",
    ],
)
def test_correct_claims(history: History) -> None:
    assert violations_of(DeviceClaims, history, SETTINGS) == []


@pytest.mark.parametrize(
    ("history", "message", "objects"),
    [
        (
            History().put(claim("a", "d1"), claim("b", "d1")),
            "device 'd1' of pool 'n1' (driver gpu.example.com) is allocated to this claim, and ResourceClaim "
            "default/a has it",
            ("ResourceClaim default/a", "ResourceClaim default/b"),
        ),
        (
            History().put(pod("p"), claim("a", pods=("p",))),
            "the claim is reserved, and it is not allocated",
            ("ResourceClaim default/a",),
        ),
        (
            History().put(claim("a", "d1"), claim("a", "d2")),
            "the claim's allocation was replaced by another one",
            ("ResourceClaim default/a",),
        ),
        (
            History().put(BOUND, claim("a", "d1", pods=("p",)), claim("a", "d1")),
            "the claim is no longer reserved while Pod default/p uses it on node 'n1'",
            ("Pod default/p", "ResourceClaim default/a"),
        ),
        (
            History().put(BOUND, claim("a", "d1", pods=("p",)), claim("a")),
            "the claim is deallocated while Pod default/p uses it on node 'n1'",
            ("Pod default/p", "ResourceClaim default/a"),
        ),
        (
            History().put(claim("a", "d1", pods=("q",))),
            "the claim was reserved for a pod that never existed (uid uid-q)",
            ("ResourceClaim default/a",),
        ),
    ],
    ids=["one device twice", "reserved only", "replaced", "unreserved", "deallocated", "no such pod"],
)
def test_broken_claims(history: History, message: str, objects: tuple[str, ...]) -> None:
    (violation,) = violations_of(DeviceClaims, history, SETTINGS)
    assert violation.message == message
    assert violation.objects == objects


def test_a_controller_may_compare_a_reservation_with_the_former_pod() -> None:
    reserved, free = claim("a", "d1", pods=("p",)), claim("a")
    history = History().put(pod("p", uid="former")).delete(pod("p", uid="former")).put(BOUND, reserved)
    result = result_of(DeviceClaims, history.put(free), SETTINGS)
    assert (result.violations, result.exceptions) == ((), {"former-pod": 1})
    later = history.put(reserved, *[pod("other")] * 15, free)
    assert len(violations_of(DeviceClaims, later, SETTINGS)) == 1


def test_a_write_of_the_former_leader_is_an_exception() -> None:
    result = result_of(
        DeviceClaims, History().put(leader("s1"), claim("a", "d1"), leader("s2"), claim("b", "d1"))
    )
    assert result.violations == ()
    assert result.exceptions == {"new-leader": 1}


def test_a_former_leader_may_take_back_a_reservation_but_frees_no_device() -> None:
    reserved = claim("a", "d1", pods=("p",))
    begin = History().put(leader("s1"), reserved, leader("s2"), BOUND)
    result = result_of(DeviceClaims, begin.put(claim("a", "d1")), SETTINGS)
    assert (result.violations, result.exceptions) == ((), {"new-leader": 1})
    begin = History().put(leader("s1"), reserved, leader("s2"), BOUND)
    (freed,) = violations_of(DeviceClaims, begin.put(claim("a")), SETTINGS)
    assert freed.message == "the claim is deallocated while Pod default/p uses it on node 'n1'"
    begin = History().put(leader("s1"), reserved, leader("s2"), BOUND).wait(60)
    assert len(violations_of(DeviceClaims, begin.put(claim("a", "d1")), SETTINGS)) == 1


def test_one_leader_has_no_such_excuse() -> None:
    history = History().put(leader("s1"), claim("a", "d1"), leader("s1"), claim("b", "d1"))
    assert len(violations_of(DeviceClaims, history, SETTINGS)) == 1


def test_a_restarted_scheduler_may_begin_with_an_older_state() -> None:
    result = result_of(DeviceClaims, History().put(claim("a", "d1"), claim("b", "d1")), ComponentSettings())
    assert result.violations == ()
    assert result.exceptions == {"stale-start": 1}
