"""The state of the cluster and of the cloud provider as a loop begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from nominee.machinery.api.pb import apps, core, policy
from nominee.machinery.scheduling.daemons import NodeRules

CREATING, RUNNING, DELETING = "creating", "running", "deleting"
_ERROR_CLASSES = {1: "OutOfResource", 99: "Other"}


@dataclass(frozen=True, slots=True)
class ControllerKey:
    """Identify the controller of a pod."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class DaemonSet:
    """A DaemonSet's UID, the pod that it would create, and the nodes for which it would."""

    uid: str
    pod: core.Pod
    rules: NodeRules

    @classmethod
    def of(cls, source: apps.DaemonSet) -> DaemonSet:
        """Create the pod from the template, without a node."""
        meta, pod = source.metadata, core.Pod()
        pod.metadata.CopyFrom(source.spec.template.metadata)
        pod.metadata.name, pod.metadata.namespace = f"{meta.name}-pod", meta.namespace
        pod.metadata.uid = f"template-of-{meta.uid}"
        pod.metadata.ownerReferences.add(kind="DaemonSet", name=meta.name, uid=meta.uid, controller=True)
        pod.spec.CopyFrom(source.spec.template.spec)
        rules = NodeRules.of(pod.spec)
        del pod.spec.tolerations[:]
        pod.spec.tolerations.extend(rules.tolerations)
        return cls(meta.uid, pod, rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The objects of the cluster. Messages are shared with the informers' caches: do not change them."""

    nodes: tuple[core.Node, ...] = ()
    pods: tuple[core.Pod, ...] = ()
    budgets: tuple[policy.PodDisruptionBudget, ...] = ()
    controllers: Mapping[ControllerKey, int | None] = field(default_factory=dict)
    """Replicas of the controllers that exist; None for kinds without replicas."""
    daemon_sets: tuple[DaemonSet, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """An instance as the provider reports it. `state` is "" if the provider does not specify it."""

    id: str
    state: str = RUNNING
    error_class: int = 0
    error_code: str = ""
    error_message: str = ""

    @property
    def creation_failed(self) -> bool:
        """Whether the provider could not create the instance."""
        return self.state == CREATING and bool(self.error_code)

    @property
    def error(self) -> str:
        """Class and code of the error, as events have them: `OutOfResource.QUOTA_EXCEEDED`."""
        return f"{_ERROR_CLASSES.get(self.error_class, self.error_class)}.{self.error_code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """A node group as the provider reports it. `template` is a node of the group, if the provider has one."""

    id: str
    min: int
    max: int
    target: int
    template: core.Node | None = None
    instances: tuple[Instance, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudView:
    """The node groups in one loop, by ID, in the provider's order."""

    groups: Mapping[str, NodeGroup] = field(default_factory=dict)
    group_of_node: Mapping[str, str] = field(default_factory=dict)
    """Group IDs by node name (and instance ID), for the nodes that the provider manages."""

    def group(self, node_name: str) -> NodeGroup | None:
        """Return the group of a node or an instance; None if the provider does not manage it."""
        return self.groups.get(self.group_of_node.get(node_name, ""))

    def with_target(self, group_id: str, target: int) -> CloudView:
        """Return a copy in which a group has another target size."""
        groups = {**self.groups, group_id: replace(self.groups[group_id], target=target)}
        return replace(self, groups=groups)
