"""Controller revisions: data, hash and name, the order of revisions, roll-back and truncation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nominee.controllers.claiming import claim
from nominee.controllers.revisions import history
from nominee.machinery.api.objects import is_terminating
from nominee.machinery.api.pb import apps, core
from nominee.machinery.wire.codec import from_json
from tests.controllers.builders import owned_by, stamp

CONTAINER = {
    "image": "test",
    "imagePullPolicy": "Always",
    "name": "test",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
SPEC = {
    "containers": [CONTAINER],
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}
METADATA = {"annotations": {"test": "value"}, "labels": {"app": "foo"}}
OLD_DATA = {
    "spec": {
        "template": {"$patch": "replace", "metadata": METADATA | {"creationTimestamp": None}, "spec": SPEC}
    }
}


def stateful_set(image: str = "test", **metadata: Any) -> apps.StatefulSet:
    container = CONTAINER | {"image": image}
    body = {
        "metadata": {"name": "test", "namespace": "default", "uid": "set", **metadata},
        "spec": {
            "selector": {"matchLabels": {"app": "foo"}},
            "template": {"metadata": METADATA, "spec": SPEC | {"containers": [container]}},
        },
    }
    return from_json(apps.StatefulSet, body)


def revision_of(image: str, number: int, *, name: str = "", created: int = 0) -> apps.ControllerRevision:
    of = stateful_set(image)
    made = history.new_revision(of, number, history.data_hash(history.data_of(of.spec.template), 0))
    made.metadata.name = name or made.metadata.name
    made.metadata.creationTimestamp.seconds = created
    return made


def compact(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (history.data_of(stateful_set().spec.template), "776999688b"),
        (compact(OLD_DATA), "c77f6d978"),
    ],
)
def test_the_hash_is_upstreams(data: bytes, digest: str) -> None:
    """Check against pkg/controller/statefulset/testdata/compatibility_revision_1.3[34].0.json."""
    assert history.data_hash(data, 0) == digest
    assert history.data_hash(data, 1) != digest


def test_data_are_encoded_as_go_does() -> None:
    template = core.PodTemplateSpec()
    template.metadata.annotations["a"] = "<é&\u2028>"
    assert history.data_of(template) == (
        b'{"spec":{"template":{"$patch":"replace","metadata":{"annotations":'
        b'{"a":"\\u003c\xc3\xa9\\u0026\\u2028\\u003e"}},"spec":{"containers":null}}}}'
    )


def test_a_new_revision() -> None:
    made = history.update_revision(stateful_set(annotations={"note": "x"}), [], 0)
    assert (made.create, made.renumber) == (True, False)
    revision = made.revision
    assert (revision.metadata.name, revision.metadata.namespace) == ("test-776999688b", "default")
    assert revision.metadata.labels == {"app": "foo", "controller.kubernetes.io/hash": "776999688b"}
    assert revision.metadata.annotations == {"note": "x"}
    assert revision.revision == 1
    (owner,) = revision.metadata.ownerReferences
    assert (owner.kind, owner.uid, owner.controller) == ("StatefulSet", "set", True)
    collided = history.update_revision(stateful_set(), [revision_of("other", 4)], 1)
    assert collided.revision.metadata.name != revision.metadata.name
    assert collided.revision.revision == 5
    daemon = apps.DaemonSet()
    daemon.metadata.name = "d" * 300
    labelled = history.new_revision(daemon, 1, "abc", hash_label=history.REVISION_LABEL)
    assert labelled.metadata.labels == {history.REVISION_LABEL: "abc"}
    assert labelled.metadata.name == "d" * 223 + "-abc"


def test_an_equal_revision_is_kept_or_becomes_the_latest_again() -> None:
    first, second = revision_of("test", 1), revision_of("v2", 2)
    assert history.update_revision(stateful_set(), [first], 0).revision is first
    rolled_back = history.update_revision(stateful_set(), [second, first], 0)
    assert (rolled_back.create, rolled_back.renumber) == (False, True)
    assert rolled_back.revision.metadata.name == first.metadata.name
    assert (rolled_back.revision.revision, first.revision) == (3, 1)
    # Of several equal ones the latest counts.
    twin = revision_of("test", 3, name="twin")
    assert history.update_revision(stateful_set(), [first, second, twin], 0).revision is twin


def test_a_revision_that_an_earlier_release_wrote_is_equal() -> None:
    old = revision_of("test", 1)
    old.data.raw = compact(OLD_DATA)
    assert history.restores(old, stateful_set().spec.template)
    assert not history.restores(old, stateful_set("v2").spec.template)


def test_the_order_of_revisions() -> None:
    rows = [
        revision_of("x", 2, name="b", created=5),
        revision_of("x", 2, name="a", created=5),
        revision_of("x", 2, name="c", created=1),
        revision_of("x", 1, name="d", created=9),
    ]
    assert [each.metadata.name for each in history.in_order(rows)] == ["d", "c", "a", "b"]
    assert history.next_number(rows) == 3
    assert history.next_number([]) == 1


@pytest.mark.parametrize(
    ("live", "limit", "deleted"),
    [
        ((), 3, ["r1"]),
        ((), 0, ["r1", "r2", "r3", "r4"]),
        (("r1",), 3, []),
        (("r1", "r4"), 1, ["r2"]),
        (("r1", "r2", "r3", "r4"), 0, []),
        ((), -1, []),
    ],
)
def test_the_oldest_revisions_beyond_the_limit_are_deleted(
    live: tuple[str, ...], limit: int, deleted: list[str]
) -> None:
    rows = [revision_of("x", number, name=f"r{number}") for number in (3, 1, 4, 2)]
    assert [each.metadata.name for each in history.to_delete(rows, live, limit)] == deleted


def test_a_revision_restores_its_template() -> None:
    assert history.template_of(revision_of("test", 1)) == stateful_set().spec.template


def test_orphaned_revisions_are_adopted() -> None:
    of = stateful_set()
    mine, orphan, foreign, ending = (revision_of("x", n, name=f"r{n}") for n in range(1, 5))
    for each in (orphan, foreign, ending):
        del each.metadata.ownerReferences[:]
    foreign.metadata.ownerReferences.append(
        from_json(type(mine.metadata.ownerReferences[0]), owned_by("other", kind="StatefulSet"))
    )
    ending.metadata.deletionTimestamp.CopyFrom(
        from_json(core.Pod, {"metadata": {"deletionTimestamp": stamp(0)}}).metadata.deletionTimestamp
    )
    found = claim(
        of, of.spec.selector, [mine, orphan, foreign, ending], lambda each: not is_terminating(each)
    )
    assert (found.owned, found.adopt, found.release) == ([mine], [orphan], [])
