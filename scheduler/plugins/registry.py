"""The table of in-tree plugins, and the default profile's order and weights.

Source: kube-scheduler 1.36, default plugins. A later in-tree plugin is a row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nominee.machinery.features.gates import Gates
from nominee.scheduler.framework.api.deferred_resize import Flavour, ResizePreemption
from nominee.scheduler.framework.interface import Plugin
from nominee.scheduler.framework.runtime.profile import (
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
from nominee.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from nominee.scheduler.plugins.node_resources import NodeResourcesBalancedAllocation, NodeResourcesFit
from nominee.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from nominee.scheduler.plugins.nodes.image_locality import ImageLocality
from nominee.scheduler.plugins.nodes.node_affinity import NodeAffinity
from nominee.scheduler.plugins.nodes.node_declared_features import NodeDeclaredFeatures
from nominee.scheduler.plugins.nodes.node_name import NodeName
from nominee.scheduler.plugins.nodes.node_ports import NodePorts
from nominee.scheduler.plugins.nodes.node_unschedulable import NodeUnschedulable
from nominee.scheduler.plugins.nodes.taint_toleration import TaintToleration
from nominee.scheduler.plugins.pod_topology_spread import PodTopologySpread
from nominee.scheduler.plugins.priority_sort import PrioritySort
from nominee.scheduler.plugins.scheduling_gates import SchedulingGates
from nominee.scheduler.plugins.volume_binding import VolumeBinding
from nominee.scheduler.plugins.volumes.volume_restrictions import VolumeRestrictions
from nominee.scheduler.plugins.volumes.volume_zone import VolumeZone


@dataclass(frozen=True, slots=True)
class Entry:
    """An in-tree plugin; `weight` is that of its scores. The default profile has it, or a gate adds it."""

    plugin: type[Plugin]
    weight: int = 1
    is_default: bool = True


# In upstream's default order.
TABLE: Final[tuple[Entry, ...]] = (
    Entry(SchedulingGates),
    Entry(PrioritySort),
    Entry(NodeUnschedulable),
    Entry(NodeName),
    Entry(TaintToleration, 3),
    Entry(NodeAffinity, 2),
    Entry(NodePorts),
    Entry(NodeResourcesFit),
    Entry(VolumeRestrictions),
    Entry(NodeVolumeLimits),
    Entry(VolumeBinding),
    Entry(VolumeZone),
    Entry(PodTopologySpread, 2),
    Entry(InterPodAffinity, 2),
    Entry(NodeDeclaredFeatures),
    Entry(DynamicResources, 2),
    Entry(DefaultPreemption),
    Entry(NodeResourcesBalancedAllocation),
    Entry(ImageLocality),
    Entry(DefaultBinder),
    Entry(GangScheduling, is_default=False),
    Entry(DeferredPodScheduling, is_default=False),
)
IN_TREE: Final[Mapping[str, type[Plugin]]] = {entry.plugin.name: entry.plugin for entry in TABLE}
DEFAULT_PLUGINS: Final = tuple(Enabled(each.plugin.name, each.weight) for each in TABLE if each.is_default)


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
