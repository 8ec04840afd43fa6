"""A deployment's replica sets: their names, revisions, annotations and owners."""

from __future__ import annotations

import re

import pytest

from nominee.controllers.claiming import ClaimedObjects, claim
from nominee.controllers.deployments import rollout, sets
from nominee.machinery.api.pb import apps
from tests.controllers.deployments.builders import deployment, replica_set

HASH = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{1,10}")


def test_a_new_set_has_the_hash_everywhere() -> None:
    made = sets.new_set(deployment())
    digest = made.metadata.labels[sets.HASH_LABEL]
    assert HASH.fullmatch(digest)
    assert made.metadata.name == f"web-{digest}"
    assert made.spec.selector.matchLabels == {"app": "web", sets.HASH_LABEL: digest}
    assert made.spec.template.metadata.labels == made.metadata.labels
    assert made.metadata.ownerReferences[0].kind == "Deployment"
    again = sets.new_set(deployment(image="v2"))
    assert again.metadata.name != made.metadata.name
    collided = rollout.count_collision(deployment())
    assert collided.status.collisionCount == 1
    assert sets.new_set(collided).metadata.name != made.metadata.name
    assert sets.same_template(made.spec.template, deployment().spec.template)


@pytest.mark.parametrize(
    ("before", "revision", "after"),
    [
        ({}, 1, {sets.REVISION: "1"}),
        ({sets.REVISION: "1"}, 3, {sets.REVISION: "3", sets.HISTORY: "1"}),
        ({sets.REVISION: "3", sets.HISTORY: "1"}, 5, {sets.REVISION: "5", sets.HISTORY: "1,3"}),
        ({sets.REVISION: "4"}, 4, {sets.REVISION: "4"}),
        ({sets.REVISION: "x"}, 4, {sets.REVISION: "x"}),
        (
            {sets.REVISION: "9", sets.HISTORY: "11," + ",".join(["1"] * 999)},
            10,
            {sets.REVISION: "10", sets.HISTORY: ",".join(["1"] * 999 + ["9"])},
        ),
    ],
)
def test_a_new_revision_is_appended_to_the_history(
    before: dict[str, str], revision: int, after: dict[str, str]
) -> None:
    each = replica_set("a", "v1", 1)
    each.metadata.annotations.update(before)
    assert sets.annotate(each, deployment(), revision) is (before != after)
    assert dict(each.metadata.annotations) == after


def test_a_deployments_annotations_are_copied_except_the_controllers_own() -> None:
    found = deployment(annotations={"why": "x", sets.LAST_APPLIED: "{}", sets.REVISION: "7"})
    each = replica_set("a", "v1", 1, revision=2)
    assert sets.annotate(each, found, 1)
    assert dict(each.metadata.annotations) == {"why": "x", sets.REVISION: "2"}


def _claimed(of: apps.Deployment, *found: apps.ReplicaSet) -> ClaimedObjects[apps.ReplicaSet]:
    return claim(of, of.spec.selector, found, lambda _: True)


def test_which_sets_are_a_deployments() -> None:
    own, strayed, orphan, other = (
        replica_set(name, "v1", 1) for name in ("own", "strayed", "orphan", "other")
    )
    strayed.metadata.labels["app"] = "x"
    del orphan.metadata.ownerReferences[:]
    other.metadata.ownerReferences[0].uid = "another"
    found = _claimed(deployment(), own, strayed, orphan, other)
    assert [each.metadata.name for each in found.owned] == ["own"]
    assert [each.metadata.name for each in found.adopt] == ["orphan"]
    assert [each.metadata.name for each in found.release] == ["strayed"]
    ending = deployment()
    ending.metadata.deletionTimestamp.seconds = 1
    found = _claimed(ending, own, strayed, orphan)
    assert (found.adopt, found.release) == ([], [])
