"""The share of its node that a pod would have if its spec asked for other resources. Pure."""

from __future__ import annotations

from nominee.kubelet.resources.pod_resources import PodResources, with_resources
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import Resources, pod_requests


def requested(
    pod: core.Pod,
    desired: PodResources,
    resources: PodResources,
    *,
    use_status: bool = False,
    pod_level: bool = True,
    pod_level_status: bool = False,
    overhead: bool = True,
) -> Resources:
    """Return the requests of the pod with `resources` in place of its own (`desired`).

    `pod_level`: PodLevelResources; `pod_level_status`: InPlacePodLevelResourcesVerticalScaling, without which
    neither `desired` nor `resources` have any for the pod as a whole.
    """
    if not resources.same(desired):
        pod = with_resources(pod, resources, pod_level=pod_level_status)
    return pod_requests(
        pod,
        use_status=use_status,
        pod_level=pod_level,
        pod_level_status=pod_level_status,
        overhead=overhead,
    )
