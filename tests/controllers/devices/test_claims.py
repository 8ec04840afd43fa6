"""Claims from templates, and the writes for claims whose pods have ended."""

from __future__ import annotations

from typing import Any

import pytest

from nominee.controllers.devices import reservations, templates
from nominee.machinery.api.claim_templates import POD_CLAIM_NAME, claim_from
from nominee.machinery.api.pb import core, devices
from tests.controllers.builders import owned_by, pod
from tests.support.devices import allocation, claim, template, using

FINALIZER = reservations.FINALIZER
MINE = [owned_by("uid-p", kind="Pod", name="p")]


def test_a_claim_has_the_pods_name_and_the_templates_body() -> None:
    source = template("t")
    source.spec.metadata.labels["a"] = "b"
    source.spec.metadata.annotations["x"] = "y"
    made = claim_from(source, pod("p", uid="uid-p"), "gpu")
    assert made.metadata.generateName == "p-gpu-"
    assert dict(made.metadata.labels) == {"a": "b"}
    assert dict(made.metadata.annotations) == {"x": "y", "resource.kubernetes.io/pod-claim-name": "gpu"}
    owner = made.metadata.ownerReferences[0]
    assert (owner.kind, owner.name, owner.uid, owner.controller) == ("Pod", "p", "uid-p", True)
    assert made.spec == source.spec.spec


def test_a_long_name_leaves_room_for_its_random_end() -> None:
    made = claim_from(template("t"), pod("p" * 60, uid="u"), "gpu")
    assert made.metadata.generateName == "p" * 57 + "-"


def test_a_claim_that_was_created_before_is_found() -> None:
    who = pod("p", uid="uid-p")
    marked = {POD_CLAIM_NAME: "gpu"}
    ours = claim("p-gpu-x", ownerReferences=MINE, annotations=marked)
    others = [
        claim("a", annotations=marked),
        claim("b", ownerReferences=MINE, annotations={POD_CLAIM_NAME: "other"}),
        claim("c", ownerReferences=[owned_by("uid-q", kind="Pod", name="q")], annotations=marked),
    ]
    assert templates.created_for(who, "gpu", [*others, ours]) is ours
    assert templates.created_for(who, "gpu", others) is None


@pytest.mark.parametrize(
    ("fields", "known", "waits"),
    [
        ({}, False, True),
        ({}, True, False),
        ({"phase": "Failed"}, False, False),
        ({"deleted": True}, False, False),
    ],
)
def test_which_pods_wait_for_claims(fields: dict[str, Any], known: bool, waits: bool) -> None:
    who = using(pod("p", uid="uid-p", **fields), template="t", name="gpu")
    if known:
        who.status.resourceClaimStatuses.add(name="gpu", resourceClaimName="p-gpu-x")
    assert templates.waits_for_claims(who) is waits


def test_all_names_of_a_pods_claims() -> None:
    who = using(using(pod("p"), claim="shared"), template="t", name="gpu")
    who.status.resourceClaimStatuses.add(name="gpu", resourceClaimName="p-gpu-x")
    who.status.extendedResourceClaimStatus.resourceClaimName = "p-extended"
    assert templates.claim_names(who) == ["shared", "p-gpu-x", "p-extended"]


@pytest.mark.parametrize(
    ("fields", "done"),
    [
        ({}, False),
        ({"phase": "Succeeded"}, True),
        ({"deleted": True}, True),
        ({"deleted": True, "node": "n1"}, False),
    ],
)
def test_a_pod_is_done_when_it_ended_or_never_starts(fields: dict[str, Any], done: bool) -> None:
    assert templates.is_done(pod("p", **fields)) is done


def reserved(*users: str, finalizer: bool = True, **metadata: Any) -> devices.ResourceClaim:
    references = [{"resource": "pods", "name": u, "uid": f"uid-{u}"} for u in users]
    status = {"allocation": allocation(("s", "d")), "reservedFor": references}
    return claim("c", status=status, finalizers=[FINALIZER] if finalizer else [], **metadata)


def plan(what: devices.ResourceClaim, *live: str, owner_is_done: bool = False) -> str:
    """Describe the planned writes: consumers and allocation of the status, finalizer, deletion."""
    found = reservations.plan(what, lambda reference: reference.name in live, owner_is_done)
    words = []
    if found.status is not None:
        names = [r.name for r in found.status.status.reservedFor]
        kept = "allocated" if found.status.status.HasField("allocation") else "free"
        words.append(f"{','.join(names) or 'unused'} {kept}")
    words += ["finalizer"] if found.drops_finalizer else []
    words += ["delete"] if found.deletes else []
    return "; ".join(words)


def test_a_claim_in_use_is_left_alone() -> None:
    assert plan(reserved("p"), "p") == ""


def test_a_pod_that_has_ended_is_no_longer_a_consumer() -> None:
    assert plan(reserved("p", "q"), "q") == "q allocated"


def test_the_last_user_frees_the_devices() -> None:
    assert plan(reserved("p")) == "unused free; finalizer"


def test_a_claim_without_the_finalizer_stays_allocated() -> None:
    assert plan(reserved("p", finalizer=False)) == "unused allocated"


def test_an_allocated_claim_without_consumers_stays_allocated() -> None:
    assert plan(reserved()) == ""


def test_a_claim_that_is_being_deleted_is_freed() -> None:
    gone_at = "2026-01-01T00:00:00Z"
    assert plan(reserved(deletionTimestamp=gone_at)) == "unused free; finalizer"
    assert plan(reserved("p", deletionTimestamp=gone_at), "p") == ""


def test_the_claim_of_a_pod_that_has_ended_is_deleted() -> None:
    assert plan(reserved("p", ownerReferences=MINE), owner_is_done=True) == "unused free; finalizer; delete"
    assert plan(claim("c", ownerReferences=MINE), owner_is_done=True) == "delete"
    assert plan(reserved("q", ownerReferences=MINE), "q", owner_is_done=True) == ""


def test_the_owning_pod_of_a_claim() -> None:
    assert reservations.owning_pod(claim("c", ownerReferences=MINE)) == ("p", "uid-p")
    assert reservations.owning_pod(claim("c", ownerReferences=[owned_by("u")])) == ("", "")
    assert reservations.owning_pod(claim("c")) == ("", "")


def test_the_controller_reserves_claims_of_pods_bound_without_the_scheduler() -> None:
    on_node = pod("p", uid="uid-p", node="n1")
    assert reservations.needs_reservation(on_node, reserved("q"))
    assert not reservations.needs_reservation(on_node, reserved("p"))
    assert not reservations.needs_reservation(on_node, claim("c"))
    assert not reservations.needs_reservation(pod("p", uid="uid-p"), reserved("q"))


@pytest.mark.parametrize(
    ("resource", "found", "live"),
    [
        ("pods", pod("p", uid="uid-p"), True),
        ("pods", pod("p", uid="uid-p", phase="Failed"), False),
        ("pods", pod("p", uid="uid-other"), False),
        ("pods", None, False),
        ("widgets", None, True),
    ],
)
def test_which_consumers_are_live(resource: str, found: core.Pod | None, live: bool) -> None:
    reference = devices.ResourceClaimConsumerReference(resource=resource, name="p", uid="uid-p")
    assert reservations.is_live(reference, found) is live


def test_the_owner_of_a_claim_is_done_when_it_ended_or_was_replaced() -> None:
    of = claim("c", ownerReferences=MINE)
    uid = MINE[0]["uid"]
    assert not reservations.owner_is_done(of, pod("p", uid=uid))
    assert not reservations.owner_is_done(of, None), "the garbage collector deletes it"
    assert reservations.owner_is_done(of, pod("p", uid=uid, phase="Succeeded"))
    assert reservations.owner_is_done(of, pod("p", uid="uid-other"))
