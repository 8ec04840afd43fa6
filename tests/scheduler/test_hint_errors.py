"""What hints say to an object of the wrong kind: kube-scheduler 1.36's words, which differ by plugin."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message

from nominee.machinery.api.pb import core, devices, storage
from nominee.scheduler.framework.api.events import ActionType, ClusterEvent, EventResource, QueueingHint
from nominee.scheduler.framework.types import PodInfo
from nominee.scheduler.plugins.inter_pod_affinity.hints import after_pod_change
from tests.scheduler.golden import build_world

ADD, UPDATE, DELETE = ActionType.Add, ActionType.Update, ActionType.Delete
WRONG = core.Node()
POD, CLAIM = "expected *v1.Pod, but got *v1.Node", "expected *v1.PersistentVolumeClaim, but got *v1.Node"
AFTER = "unexpected objects in isSchedulableAfter"


@pytest.mark.parametrize(
    ("plugin", "resource", "action", "said"),
    [
        ("NodeResourcesFit", EventResource.AssignedPod, DELETE, POD),
        ("NodePorts", EventResource.AssignedPod, DELETE, POD),
        ("InterPodAffinity", EventResource.AssignedPod, DELETE, POD),
        ("PodTopologySpread", EventResource.AssignedPod, DELETE, POD),
        ("NodeVolumeLimits", EventResource.AssignedPod, DELETE, f"{AFTER}PodDeleted: {POD}"),
        ("NodeVolumeLimits", EventResource.PVC, ADD, f"{AFTER}PVCAdded: {CLAIM}"),
        (
            "NodeVolumeLimits",
            EventResource.CSINode,
            UPDATE,
            f"{AFTER}CSINodeUpdated: expected *v1.CSINode, but got *v1.Node",
        ),
        (
            "NodeVolumeLimits",
            EventResource.VolumeAttachment,
            DELETE,
            f"{AFTER}VolumeAttachmentDeleted: expected *v1.VolumeAttachment, but got *v1.Node",
        ),
        ("VolumeRestrictions", EventResource.AssignedPod, DELETE, f"{AFTER}PodDeleted: {POD}"),
        ("VolumeRestrictions", EventResource.PVC, ADD, f"{AFTER}PersistentVolumeClaimChange: {CLAIM}"),
        ("VolumeZone", EventResource.PVC, ADD, f"{AFTER}PersistentVolumeClaimChange: {CLAIM}"),
        (
            "VolumeZone",
            EventResource.PV,
            ADD,
            f"{AFTER}PersistentVolumeChange: expected *v1.PersistentVolume, but got *v1.Node",
        ),
        (
            "VolumeZone",
            EventResource.StorageClass,
            ADD,
            f"{AFTER}StorageClassAdded: expected *v1.StorageClass, but got *v1.Node",
        ),
        ("VolumeBinding", EventResource.PVC, ADD, CLAIM),
        ("VolumeBinding", EventResource.StorageClass, ADD, "expected *v1.StorageClass, but got *v1.Node"),
        (
            "DynamicResources",
            EventResource.ResourceClaim,
            ADD,
            "unexpected object in isSchedulableAfterClaimChange: "
            "expected *v1.ResourceClaim, but got *v1.Node",
        ),
        (
            "DynamicResources",
            EventResource.UnscheduledPod,
            ActionType.UpdatePodGeneratedResourceClaim,
            f"unexpected object in isSchedulableAfterPodChange: {POD}",
        ),
    ],
)
def test_the_wrong_kind(plugin: str, resource: EventResource, action: ActionType, said: str) -> None:
    event = ClusterEvent(resource, action)
    hints = [
        registered.hint
        for registered in build_world([]).framework.events_to_register()[plugin] or ()
        if registered.event.matches(event) and registered.hint is not None
    ]
    assert hints
    old, new = (WRONG, None) if action is DELETE else (None, WRONG)
    for hint in hints:
        with pytest.raises(TypeError) as raised:
            hint(PodInfo(core.Pod()), old, new)
        assert str(raised.value) == said


def test_of_two_wrong_objects_the_error_names_the_new_one() -> None:
    hints = {
        registered.event.resource: registered.hint
        for registered in build_world([]).framework.events_to_register()["VolumeBinding"] or ()
    }
    hint = hints[EventResource.PVC]
    assert hint is not None
    old: Message = devices.DeviceClass()
    with pytest.raises(TypeError, match=r"but got \*v1.CSINode$"):
        hint(PodInfo(core.Pod()), old, storage.CSINode())


def test_required_affinity_that_cannot_be_parsed_is_the_parsers_error() -> None:
    pod, other = core.Pod(), core.Pod()
    other.spec.nodeName = "n"
    affinity = pod.spec.affinity.podAffinity
    weighted = affinity.preferredDuringSchedulingIgnoredDuringExecution.add(weight=1).podAffinityTerm
    weighted.labelSelector.matchExpressions.add(key="a", operator="Bad")
    assert after_pod_change(PodInfo(pod), None, other) is QueueingHint.Skip
    term = affinity.requiredDuringSchedulingIgnoredDuringExecution.add()
    term.labelSelector.matchExpressions.add(key="a", operator="Bad")
    with pytest.raises(ValueError, match=r'^"Bad" is not a valid label selector operator$'):
        after_pod_change(PodInfo(pod), None, other)
