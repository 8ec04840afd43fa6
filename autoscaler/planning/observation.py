"""What the autoscaler knows of the cluster and the cloud at the moment when a loop begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from machinery.api.pb import apps, core, policy

CREATING, RUNNING, DELETING = "creating", "running", "deleting"
_ERROR_CLASSES = {1: "OutOfResource", 99: "Other"}


@dataclass(frozen=True, slots=True)
class ControllerKey:
    """Whose pod it is."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class DaemonSet:
    """A DaemonSet by its uid, with the pod that it would create."""

    uid: str
    pod: core.Pod

    @classmethod
    def of(cls, source: apps.DaemonSet) -> DaemonSet:
        """Make the pod from the template, without a node."""
        meta, pod = source.metadata, core.Pod()
        pod.metadata.CopyFrom(source.spec.template.metadata)
        pod.metadata.name, pod.metadata.namespace = f"{meta.name}-pod", meta.namespace
        pod.metadata.uid = f"template-of-{meta.uid}"
        pod.metadata.ownerReferences.add(kind="DaemonSet", name=meta.name, uid=meta.uid, controller=True)
        pod.spec.CopyFrom(source.spec.template.spec)
        return cls(meta.uid, pod)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The cluster. Messages are shared with caches: look only."""

    nodes: tuple[core.Node, ...] = ()
    pods: tuple[core.Pod, ...] = ()
    budgets: tuple[policy.PodDisruptionBudget, ...] = ()
    controllers: Mapping[ControllerKey, int | None] = field(default_factory=dict)
    """Replicas of the controllers that exist; None for those that have no number."""
    daemon_sets: tuple[DaemonSet, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A machine as the provider reports it. `state` "" is unspecified."""

    id: str
    state: str = RUNNING
    error_class: int = 0
    error_code: str = ""
    error_message: str = ""

    @property
    def failed(self) -> bool:
        """Whether the provider could not create the machine."""
        return self.state == CREATING and bool(self.error_code)

    @property
    def error(self) -> str:
        """The class and code of the error, as events have them: `OutOfResource.QUOTA_EXCEEDED`."""
        return f"{_ERROR_CLASSES.get(self.error_class, self.error_class)}.{self.error_code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """A group as the provider reports it. `template` is what its nodes will be like, if it knows."""

    id: str
    min: int
    max: int
    target: int
    template: core.Node | None = None
    instances: tuple[Instance, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudView:
    """The provider's answers of one loop; groups by id, in the provider's order."""

    groups: Mapping[str, NodeGroup] = field(default_factory=dict)
    group_of_node: Mapping[str, str] = field(default_factory=dict)
    """Group ids by node name (and instance id), of nodes that are managed."""

    def group(self, node_name: str) -> NodeGroup | None:
        """The group of a node, or of an instance; None where it is not managed."""
        return self.groups.get(self.group_of_node.get(node_name, ""))

    def with_target(self, group_id: str, target: int) -> CloudView:
        """The same, after an order or a return."""
        groups = {**self.groups, group_id: replace(self.groups[group_id], target=target)}
        return replace(self, groups=groups)
