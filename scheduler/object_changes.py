"""Return the cluster events that a change of a pod or node stands for.

Source: kube-scheduler 1.36, framework events (PodSchedulingPropertiesChange, NodeSchedulingPropertiesChange).
One change can be several events, in this order; a pod's change that has none is a plain Update.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from nominee.machinery.api.pb import core, resource
from nominee.machinery.resources.quantity import Quantity
from nominee.scheduler.framework.api.events import ActionType, ClusterEvent, EventResource
from nominee.scheduler.framework.pod_requests import ResourceOptions, pod_requests
from nominee.scheduler.framework.types import DEFAULT_OPTIONS


def pod_changes(
    old: core.Pod, new: core.Pod, options: ResourceOptions = DEFAULT_OPTIONS
) -> list[ClusterEvent]:
    """Return the events of a pod's change; of the kind that the new one is (assigned or not)."""
    actions = []
    if old.metadata.labels != new.metadata.labels:
        actions.append(ActionType.UpdatePodLabel)
    if not _same_resources(old, new):
        # Resizes and reported resources count; scaling up matters to resize preemption (KEP-5836).
        if _takes_less(new, old, options):
            actions.append(ActionType.UpdatePodScaleDown)
        if options.resize_preemption and new.spec.nodeName and _takes_less(old, new, options):
            actions.append(ActionType.UpdatePodScaleUp)
    if old.spec.schedulingGates and not new.spec.schedulingGates:
        actions.append(ActionType.UpdatePodSchedulingGatesEliminated)
    if len(old.spec.tolerations) != len(new.spec.tolerations):  # the API only lets them be added
        actions.append(ActionType.UpdatePodToleration)
    if _claims_changed(old.status, new.status):
        actions.append(ActionType.UpdatePodGeneratedResourceClaim)
    which = EventResource.AssignedPod if new.spec.nodeName else EventResource.UnscheduledPod
    return [ClusterEvent(which, action) for action in actions or (ActionType.Update,)]


def _takes_less(one: core.Pod, other: core.Pod, options: ResourceOptions) -> bool:
    """Return whether one state of a pod takes less of anything than the other.

    With resize preemption also what the two hold counts, without what they desire: under
    `--resize-fit=kubelet` it decides.
    """
    use_status = options.in_place_resize
    for use_desired in (True, False) if options.resize_preemption else (True,):
        less = pod_requests(one, options, use_status=use_status, use_desired=use_desired)
        more = pod_requests(other, options, use_status=use_status, use_desired=use_desired)
        if any(name not in less or less[name] < amount for name, amount in more.items()):
            return True
    return False


def _same_resources(old: core.Pod, new: core.Pod) -> bool:
    """Return whether nothing that goes into the sums differs; cheap, and true of most updates."""
    if _has_resource_status(old.status) or _has_resource_status(new.status):
        return False
    a, b = old.spec, new.spec
    return bool(
        a.containers == b.containers
        and a.initContainers == b.initContainers
        and a.resources == b.resources
        and a.overhead == b.overhead
    )


def _has_resource_status(status: core.PodStatus) -> bool:
    return bool(
        status.containerStatuses
        or status.initContainerStatuses
        or status.allocatedResources
        or status.HasField("resources")
    )


def _claims_changed(old: core.PodStatus, new: core.PodStatus) -> bool:
    """Return whether claims made for the pod changed: its own, and for extended resources."""
    return bool(
        old.resourceClaimStatuses != new.resourceClaimStatuses
        or old.HasField("extendedResourceClaimStatus") != new.HasField("extendedResourceClaimStatus")
        or old.extendedResourceClaimStatus != new.extendedResourceClaimStatus
    )


def node_changes(old: core.Node, new: core.Node) -> list[ClusterEvent]:
    """Return the events of a node's change; none when nothing that matters has changed."""
    return [
        ClusterEvent(EventResource.Node, action) for action, changed in _NODE_CHANGES if changed(old, new)
    ]


def _equal_amounts(a: Mapping[str, resource.Quantity], b: Mapping[str, resource.Quantity]) -> bool:
    """Return whether two lists are equal as amounts: "1" is "1000m"."""
    if len(a) != len(b):
        return False
    for name in a:
        if name not in b:
            return False
        left, right = a[name].string, b[name].string
        if left != right and Quantity.parse(left) != Quantity.parse(right):
            return False
    return True


def _conditions_changed(old: core.Node, new: core.Node) -> bool:
    """Return whether the status of a condition changed: heartbeats come all the time."""
    before = {condition.type: condition.status for condition in old.status.conditions}
    after = {condition.type: condition.status for condition in new.status.conditions}
    return before != after


_NODE_CHANGES: Final[tuple[tuple[ActionType, Callable[[core.Node, core.Node], bool]], ...]] = (
    (ActionType.UpdateNodeTaint, lambda old, new: old.spec.unschedulable and not new.spec.unschedulable),
    (
        ActionType.UpdateNodeAllocatable,
        lambda old, new: not _equal_amounts(old.status.allocatable, new.status.allocatable),
    ),
    (ActionType.UpdateNodeLabel, lambda old, new: old.metadata.labels != new.metadata.labels),
    (ActionType.UpdateNodeTaint, lambda old, new: bool(old.spec.taints != new.spec.taints)),
    (ActionType.UpdateNodeCondition, _conditions_changed),
    (ActionType.UpdateNodeAnnotation, lambda old, new: old.metadata.annotations != new.metadata.annotations),
    (
        ActionType.UpdateNodeDeclaredFeature,
        lambda old, new: bool(old.status.declaredFeatures != new.status.declaredFeatures),
    ),
    (
        ActionType.UpdateNodePreemptionPolicy,
        lambda old, new: bool(old.spec.podPreemptionPolicy != new.spec.podPreemptionPolicy),
    ),
)


def is_pod_updated(old: core.Pod, new: core.Pod) -> bool:
    """Return whether a field other than the status and those of the API server has changed."""
    return _essence(old) != _essence(new)


def _essence(pod: core.Pod) -> core.Pod:
    found = core.Pod()
    found.CopyFrom(pod)
    found.ClearField("status")
    for name in ("resourceVersion", "generation", "managedFields", "finalizers"):
        found.metadata.ClearField(name)
    return found
