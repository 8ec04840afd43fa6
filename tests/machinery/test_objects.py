from __future__ import annotations

import pytest

from nominee.machinery.api import objects
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.api.pb import apps, core, meta


def pod_with(*conditions: core.PodCondition) -> core.Pod:
    return core.Pod(status=core.PodStatus(conditions=conditions))


def test_keys_print_as_people_write_them() -> None:
    pod = core.Pod(metadata=meta.ObjectMeta(name="web", namespace="shop"))
    assert str(objects.key_of(pod)) == "shop/web"
    assert str(ObjectKey("", "n1")) == "n1"
    assert ObjectKey.parse("shop/web") == objects.key_of(pod)
    assert ObjectKey.parse("n1") == ("", "n1")
    with pytest.raises(ValueError, match="unexpected key format"):
        ObjectKey.parse("a/b/c")


def test_owner_references_are_by_uid() -> None:
    owner = apps.ReplicaSet(metadata=meta.ObjectMeta(name="web", uid="u1"))
    twin = apps.ReplicaSet(metadata=meta.ObjectMeta(name="web", uid="u2"))
    pod = core.Pod()
    pod.metadata.ownerReferences.append(objects.owner_reference(owner))
    pod.metadata.ownerReferences.append(objects.owner_reference(twin, controller=False))
    controller = objects.controller_of(pod)
    assert controller is not None
    assert (controller.apiVersion, controller.kind, controller.name) == ("apps/v1", "ReplicaSet", "web")
    assert objects.is_controlled_by(pod, owner)
    assert not objects.is_controlled_by(pod, twin)
    assert objects.is_owned_by(pod, twin)
    assert objects.controller_of(core.Pod()) is None


def test_terminating() -> None:
    pod = core.Pod()
    assert not objects.is_terminating(pod)
    pod.metadata.deletionTimestamp.seconds = 7
    assert objects.is_terminating(pod)


def test_condition_keeps_its_time_until_the_status_changes() -> None:
    pod = core.Pod()
    ready = core.PodCondition(type="Ready", status="False", reason="Starting")
    assert objects.set_condition(pod.status.conditions, ready, meta.Time(seconds=1))
    assert not objects.set_condition(pod.status.conditions, ready, meta.Time(seconds=2))
    ready.reason = "StillStarting"
    assert objects.set_condition(pod.status.conditions, ready, meta.Time(seconds=3))
    assert pod.status.conditions[0].lastTransitionTime.seconds == 1
    ready.status = "True"
    assert objects.set_condition(pod.status.conditions, ready, meta.Time(seconds=4))
    assert pod.status.conditions[0].lastTransitionTime.seconds == 4
    assert len(pod.status.conditions) == 1
    assert objects.condition_is(pod.status.conditions, "Ready")
    assert not objects.condition_is(pod.status.conditions, "Absent", "Unknown")


def test_remove_condition_takes_all_of_a_type() -> None:
    a, b = core.PodCondition(type="A"), core.PodCondition(type="B")
    pod = pod_with(a, b, a)
    assert objects.remove_condition(pod.status.conditions, "A")
    assert [c.type for c in pod.status.conditions] == ["B"]
    assert not objects.remove_condition(pod.status.conditions, "A")
