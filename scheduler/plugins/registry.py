"""The table of in-tree plugins, and the default profile's order and weights.

Source: kube-scheduler 1.36, default plugins. A later in-tree plugin is a row here.
"""

from __future__ import annotations

from collections.abc import Mapping

from nominee.machinery.features.gates import Gates
from nominee.scheduler.framework.deferred_resize import Flavour, ResizePreemption
from nominee.scheduler.framework.interface import Plugin
from nominee.scheduler.framework.profile import (
    DEFAULT_SCHEDULER_NAME,
    Enabled,
    Profile,
    expand_multi_point,
)
from nominee.scheduler.plugins.default_binder import DefaultBinder
from nominee.scheduler.plugins.default_preemption import DefaultPreemption
from nominee.scheduler.plugins.deferred_pod_scheduling import DeferredPodScheduling
from nominee.scheduler.plugins.dynamic_resources import DynamicResources
from nominee.scheduler.plugins.gang_scheduling import GangScheduling
from nominee.scheduler.plugins.image_locality import ImageLocality
from nominee.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from nominee.scheduler.plugins.node_affinity import NodeAffinity
from nominee.scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from nominee.scheduler.plugins.node_ports import NodePorts
from nominee.scheduler.plugins.node_resources import NodeResourcesBalancedAllocation, NodeResourcesFit
from nominee.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from nominee.scheduler.plugins.pod_topology_spread import PodTopologySpread
from nominee.scheduler.plugins.simple import NodeName, NodeUnschedulable, PrioritySort, SchedulingGates
from nominee.scheduler.plugins.taint_toleration import TaintToleration
from nominee.scheduler.plugins.volume_binding import VolumeBinding
from nominee.scheduler.plugins.volume_restrictions import VolumeRestrictions
from nominee.scheduler.plugins.volume_zone import VolumeZone

IN_TREE: Mapping[str, type[Plugin]] = {
    plugin.name: plugin
    for plugin in (
        SchedulingGates,
        PrioritySort,
        NodeUnschedulable,
        NodeName,
        TaintToleration,
        NodeAffinity,
        NodePorts,
        NodeResourcesFit,
        VolumeRestrictions,
        NodeVolumeLimits,
        VolumeBinding,
        VolumeZone,
        PodTopologySpread,
        InterPodAffinity,
        NodeDeclaredFeatures,
        DynamicResources,
        DefaultPreemption,
        NodeResourcesBalancedAllocation,
        ImageLocality,
        DefaultBinder,
        GangScheduling,
        DeferredPodScheduling,
    )
}

# Upstream's order and weights.
DEFAULT_ORDER: tuple[Enabled, ...] = (
    Enabled("SchedulingGates"),
    Enabled("PrioritySort"),
    Enabled("NodeUnschedulable"),
    Enabled("NodeName"),
    Enabled("TaintToleration", 3),
    Enabled("NodeAffinity", 2),
    Enabled("NodePorts"),
    Enabled("NodeResourcesFit"),
    Enabled("VolumeRestrictions"),
    Enabled("NodeVolumeLimits"),
    Enabled("VolumeBinding"),
    Enabled("VolumeZone"),
    Enabled("PodTopologySpread", 2),
    Enabled("InterPodAffinity", 2),
    Enabled("NodeDeclaredFeatures"),
    Enabled("DynamicResources", 2),
    Enabled("DefaultPreemption"),
    Enabled("NodeResourcesBalancedAllocation"),
    Enabled("ImageLocality"),
    Enabled("DefaultBinder"),
)
DEFAULT_PLUGINS: tuple[Enabled, ...] = tuple(e for e in DEFAULT_ORDER if e.name in IN_TREE)


def default_plugins(gates: Gates, resize_preemption: ResizePreemption | None = None) -> tuple[Enabled, ...]:
    """Return the default plugins, with those that a gate or a flavour of resize preemption adds."""
    found = list(DEFAULT_PLUGINS)
    if gates.enabled("GangScheduling"):
        found.append(Enabled("GangScheduling"))
    if resize_preemption is not None and resize_preemption.flavour is Flavour.V1_37:
        # Before NodeResourcesFit: of two rejections the first one counts, and its events wake the pod.
        found.insert(found.index(Enabled("NodeResourcesFit")), Enabled("DeferredPodScheduling"))
    return tuple(found)


def default_profile(name: str = DEFAULT_SCHEDULER_NAME) -> Profile:
    """Return the profile of all default plugins with default arguments."""
    return Profile(name=name, points=expand_multi_point(IN_TREE, DEFAULT_PLUGINS))
