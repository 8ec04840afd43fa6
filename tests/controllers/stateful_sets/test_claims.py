"""Stateful sets: the identity of pods, their claims, and the owners of claims.

Source of the rules: kube-controller-manager 1.36, stateful_set_utils.go and stateful_pod_control.go.
"""

from __future__ import annotations

from typing import Any

import pytest

from nominee.controllers.stateful_sets import identity, retention
from nominee.controllers.stateful_sets.rollout import Step
from nominee.machinery.api.pb import apps, core
from nominee.machinery.runtime.clock import to_time
from nominee.machinery.wire.codec import from_json, to_json
from tests.controllers.builders import claim
from tests.controllers.stateful_sets.builders import NOW, member, planned, revision, stateful_set, words


@pytest.mark.parametrize(
    ("name", "parent", "ordinal"),
    [
        ("web-0", "web", 0),
        ("web-12", "web", 12),
        ("my-web-2", "my-web", 2),
        ("web", "", -1),
        ("web-x", "", -1),
        ("web-01", "", -1),
        ("web-99999999999", "", -1),
    ],
)
def test_the_ordinal_is_read_from_the_name(name: str, parent: str, ordinal: int) -> None:
    assert identity.parent_and_ordinal(name) == (parent, ordinal)


def test_a_new_pod() -> None:
    of = stateful_set(claims=["data", "log"])
    pod = identity.new_pod(of, 2, revision("v7", 1))
    assert (pod.metadata.name, pod.metadata.generateName) == ("web-2", "web-")
    assert pod.metadata.labels == {
        "app": "web",
        "tier": "1",
        "statefulset.kubernetes.io/pod-name": "web-2",
        "apps.kubernetes.io/pod-index": "2",
        "controller-revision-hash": "v7",
    }
    assert pod.metadata.annotations == {"note": "x"}
    assert (pod.spec.hostname, pod.spec.subdomain) == ("web-2", "svc")
    assert pod.spec.containers[0].image == "v7"
    (owner,) = pod.metadata.ownerReferences
    assert (owner.apiVersion, owner.kind, owner.name, owner.uid) == ("apps/v1", "StatefulSet", "web", "set")
    # A claim replaces the template's volume of its name.
    assert to_json(pod.spec)["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-2"}},
        {"name": "log", "persistentVolumeClaim": {"claimName": "log-web-2"}},
        {"name": "tmp", "emptyDir": {}},
    ]
    assert identity.is_consistent(of, pod)
    assert not identity.is_consistent(stateful_set(claims=["other"]), pod)


def test_a_new_claim_has_the_labels_of_template_and_selector() -> None:
    of = stateful_set(claims=["data"])
    ((template, name),) = identity.claims_of(of, "web-2")
    made = identity.new_claim(of, template, name)
    assert (made.metadata.name, made.metadata.namespace) == ("data-web-2", "default")
    assert made.metadata.labels == {"claim": "data", "app": "web"}


def first_step(
    of: apps.StatefulSet, pods: list[core.Pod], *claims: core.PersistentVolumeClaim
) -> Step | None:
    phases = planned(of, pods, claims={each.metadata.name: each for each in claims}).phases
    return phases[0][0] if phases else None


def names(claims: tuple[core.PersistentVolumeClaim, ...]) -> list[str]:
    return [each.metadata.name for each in claims]


def test_missing_claims_are_created_before_the_pod_and_while_it_is_pending() -> None:
    of = stateful_set(claims=["data", "log"])
    step = first_step(of, [], claim("log-web-0"))
    assert step is not None
    assert (step.verb, names(step.new_claims)) == ("create", ["data-web-0"])
    step = first_step(of, [member(of, 0, "pending")], claim("log-web-0"))
    assert step is not None
    assert (step.verb, names(step.new_claims)) == ("claims", ["data-web-0"])
    assert first_step(stateful_set(claims=["data"], replicas=1), [member(of, 0, "running")]) is None


def test_a_claim_that_terminates_fails_the_step() -> None:
    of = stateful_set(claims=["data"])
    ending = claim("data-web-0")
    ending.metadata.deletionTimestamp.CopyFrom(to_time(NOW))
    step = first_step(of, [], ending)
    assert step is not None
    assert step.ending_claims == ("data-web-0",)


SET = {"kind": "StatefulSet", "apiVersion": "apps/v1", "name": "web", "uid": "set", "controller": True}
POD = {"kind": "Pod", "apiVersion": "v1", "name": "web-2", "uid": "uid-2", "controller": True}
OTHER = {"kind": "Other", "apiVersion": "v1", "name": "x", "uid": "x", "controller": True}
USER = {"kind": "Other", "apiVersion": "v1", "name": "y", "uid": "y"}


def owned(*references: dict[str, Any], name: str = "data-web-2") -> core.PersistentVolumeClaim:
    found = claim(name)
    body = {"metadata": {"ownerReferences": list(references)}}
    found.metadata.ownerReferences.extend(
        from_json(core.PersistentVolumeClaim, body).metadata.ownerReferences
    )
    return found


@pytest.mark.parametrize(
    ("scaled", "deleted", "replicas", "before", "after"),
    [
        # whenScaled, whenDeleted, replicas (the pod is web-2), owners before, owners after; None: unchanged.
        ("Retain", "Retain", 3, [], None),
        ("Retain", "Retain", 3, [SET, USER], ["y"]),
        ("Retain", "Retain", 1, [POD], []),
        ("Retain", "Delete", 3, [], ["set"]),
        ("Retain", "Delete", 3, [SET], None),
        ("Retain", "Delete", 1, [POD], ["set"]),
        ("Delete", "Retain", 3, [], None),
        ("Delete", "Retain", 3, [SET], []),
        ("Delete", "Retain", 1, [], ["uid-2"]),
        ("Delete", "Delete", 3, [POD], ["set"]),
        ("Delete", "Delete", 1, [SET], ["uid-2"]),
        ("Delete", "Delete", 1, [POD, USER], None),
        # An owner that is no controller is made one.
        ("Retain", "Delete", 3, [SET | {"controller": False}], ["set"]),
        # Claims of an earlier set or pod are left alone.
        ("Retain", "Delete", 3, [SET | {"uid": "earlier"}], None),
        ("Delete", "Delete", 1, [POD | {"uid": "earlier"}], None),
        # Another controller: the policy does not apply, own references go.
        ("Retain", "Delete", 3, [OTHER], None),
        ("Retain", "Delete", 3, [OTHER, SET], ["x"]),
        ("Retain", "Retain", 3, [OTHER], None),
    ],
)
def test_the_owners_of_a_claim(
    scaled: str, deleted: str, replicas: int, before: list[dict[str, Any]], after: list[str] | None
) -> None:
    of = stateful_set(replicas=replicas, when_scaled=scaled, when_deleted=deleted, claims=["data"])
    changed = retention.changed_claim(of, member(of, 2), owned(*before))
    if after is None:
        assert changed is None
    else:
        assert changed is not None
        assert [each.uid for each in changed.metadata.ownerReferences] == after
        own = [each for each in changed.metadata.ownerReferences if each.uid in ("set", "uid-2")]
        assert all(each.controller and each.blockOwnerDeletion for each in own)
        assert retention.changed_claim(of, member(of, 2), changed) is None


def test_a_pod_waits_until_the_claim_of_its_predecessor_is_gone() -> None:
    of = stateful_set(claims=["data"], when_scaled="Delete")
    stale = owned(POD | {"name": "web-0", "uid": "earlier"}, name="data-web-0")
    assert first_step(of, [], stale) is None
    retained = stateful_set(claims=["data"])
    step = first_step(retained, [], stale)
    assert step is not None
    assert step.verb == "create"
    # In parallel the others do not wait.
    parallel = stateful_set(claims=["data"], when_scaled="Delete", policy="Parallel")
    assert words(planned(parallel, [], claims={"data-web-0": stale})) == [["create 1 v1", "create 2 v1"]]


def test_claims_are_changed_with_an_event_about_the_running_pod() -> None:
    of = stateful_set(claims=["data"], when_deleted="Delete", replicas=1)
    step = first_step(of, [member(of, 0)], claim("data-web-0"))
    assert step is not None
    assert (step.verb, names(step.changed_claims)) == ("update", ["data-web-0"])
    step = first_step(of, [member(of, 0, "pending")], claim("data-web-0"))
    assert step is not None
    assert (step.verb, names(step.changed_claims)) == ("claims", ["data-web-0"])


def test_a_condemned_pod_owns_its_claim_before_it_is_deleted() -> None:
    of = stateful_set(claims=["data"], when_scaled="Delete", replicas=1)
    pods = [member(of, ordinal) for ordinal in range(3)]
    found = planned(of, pods, claims={f"data-web-{n}": claim(f"data-web-{n}") for n in range(3)})
    assert words(found) == [["claims 2", "claims 1"], ["delete 2"]]


def test_another_controller_is_reported() -> None:
    of = stateful_set(claims=["data"], when_deleted="Delete", replicas=1)
    step = first_step(of, [member(of, 0)], owned(OTHER, SET, name="data-web-0"))
    assert step is not None
    assert step.contested_claims == ("data-web-0",)
