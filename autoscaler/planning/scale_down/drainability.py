"""Drainability rules: whether a pod may be evicted from its node. The first decisive rule wins. Pure.

Source: cluster-autoscaler 1.36, simulator/drainability/rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto

from nominee.autoscaler.options import Options
from nominee.autoscaler.planning.objects import annotation_keys, pods
from nominee.autoscaler.planning.objects.observation import ControllerKey
from nominee.autoscaler.planning.objects.pdb_tracker import RemainingPdbTracker
from nominee.machinery.api.objects import controller_of
from nominee.machinery.api.pb import core

_REPLICATED_KINDS = frozenset(("ReplicationController", "Job", "ReplicaSet", "StatefulSet"))
_KINDS_WITH_MINIMUM = frozenset(("ReplicationController", "ReplicaSet"))


class Outcome(Enum):
    """The decision of a rule; a rule that does not decide returns None instead."""

    SKIP_DRAIN = auto()
    """The pod needs no eviction."""
    DRAIN_OK = auto()
    BLOCK_DRAIN = auto()
    WAIT_FOR_COMPLETION = auto()
    """The pod may be evicted after it has completed."""


class BlockingReason(StrEnum):
    """Reasons for which a pod blocks the removal of its node."""

    CONTROLLER_NOT_FOUND = "ControllerNotFound"
    MIN_REPLICAS_REACHED = "MinReplicasReached"
    NOT_REPLICATED = "NotReplicated"
    LOCAL_STORAGE_REQUESTED = "LocalStorageRequested"
    NOT_SAFE_TO_EVICT = "NotSafeToEvictAnnotation"
    UNMOVABLE_KUBE_SYSTEM_POD = "UnmovableKubeSystemPod"
    NOT_ENOUGH_PDB = "NotEnoughPdb"
    BINDING = "PodBinding"
    """`fixed` only: the scheduler is binding the pod to this node."""


@dataclass(frozen=True, slots=True)
class DrainStatus:
    """The decision about a pod."""

    outcome: Outcome
    reason: BlockingReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainContext:
    """Input of the rules."""

    options: Options
    budgets: RemainingPdbTracker
    controllers: Mapping[ControllerKey, int | None] | None
    """None: controllers are not checked (the last check of an empty node)."""
    binding: frozenset[str] = frozenset()
    """UIDs of nominated pods that block the removal of their node."""
    now: float = 0.0

    def status(self, pod: core.Pod) -> DrainStatus:
        """Apply the rules to a pod."""
        for rule in RULES:
            status = rule(self, pod)
            if status is not None:
                return status
        return DrainStatus(Outcome.DRAIN_OK)


@dataclass(slots=True)
class PodsToMove:
    """The pods of a node that must be evicted before it can be deleted, or the pod that blocks that."""

    pods: list[core.Pod] = field(default_factory=list)
    daemon_set_pods: list[core.Pod] = field(default_factory=list)
    blocking: core.Pod | None = None
    reason: BlockingReason | None = None
    on_completion: core.Pod | None = None
    """The first pod that must complete before its eviction."""

    @property
    def blocked_by(self) -> str:
        """`pod/Reason`, or "" if no pod blocks."""
        return f"{self.blocking.metadata.name}/{self.reason}" if self.blocking is not None else ""


def pods_to_move(context: DrainContext, on_node: Iterable[core.Pod]) -> PodsToMove:
    """Return which pods of a node must be evicted; end at the first pod that blocks."""
    result = PodsToMove()
    for pod in on_node:
        status = context.status(pod)
        if status.outcome is Outcome.SKIP_DRAIN:
            continue
        if status.outcome is Outcome.BLOCK_DRAIN:
            return PodsToMove(blocking=pod, reason=status.reason)
        if status.outcome is Outcome.WAIT_FOR_COMPLETION and result.on_completion is None:
            result.on_completion = pod
        (result.daemon_set_pods if pods.is_daemon(pod) else result.pods).append(pod)
    return result


Rule = Callable[[DrainContext, core.Pod], DrainStatus | None]
_SKIP = DrainStatus(Outcome.SKIP_DRAIN)
_OK = DrainStatus(Outcome.DRAIN_OK)
_WAIT = DrainStatus(Outcome.WAIT_FOR_COMPLETION)


def _block(reason: BlockingReason) -> DrainStatus:
    return DrainStatus(Outcome.BLOCK_DRAIN, reason)


def _binding(context: DrainContext, pod: core.Pod) -> DrainStatus | None:
    return _block(BlockingReason.BINDING) if pod.metadata.uid in context.binding else None


def _mirror(_: DrainContext, pod: core.Pod) -> DrainStatus | None:
    return _SKIP if pods.is_mirror(pod) else None


def _long_terminating(context: DrainContext, pod: core.Pod) -> DrainStatus | None:
    return _SKIP if pods.is_long_terminating(pod, context.now) else None


def _replica_count(context: DrainContext, pod: core.Pod) -> DrainStatus | None:
    """Block when the controller is gone, or has fewer replicas than the minimum, which StatefulSets may.

    Sets of other API groups than apps are not looked up.
    """
    owner = controller_of(pod)
    if context.controllers is None or owner is None:
        return None
    is_of_apps = owner.apiVersion.partition("/")[0] == "apps"
    if owner.kind != "ReplicationController" and pods.is_daemon(pod):
        if owner.kind != "DaemonSet" or not is_of_apps:
            return None
    elif owner.kind not in _REPLICATED_KINDS or (owner.kind == "StatefulSet" and not is_of_apps):
        return None
    key = ControllerKey(owner.kind, pod.metadata.namespace, owner.name)
    if key not in context.controllers:
        return _block(BlockingReason.CONTROLLER_NOT_FOUND)
    replicas, minimum = context.controllers[key], context.options.min_replica_count
    if owner.kind in _KINDS_WITH_MINIMUM and replicas is not None and replicas < minimum:
        return _block(BlockingReason.MIN_REPLICAS_REACHED)
    return None


def _daemon_set(_: DrainContext, pod: core.Pod) -> DrainStatus | None:
    return _OK if pods.is_daemon(pod) else None


def _safe_to_evict(_: DrainContext, pod: core.Pod) -> DrainStatus | None:
    return _OK if pod.metadata.annotations.get(annotation_keys.SAFE_TO_EVICT) == "true" else None


def _terminal(_: DrainContext, pod: core.Pod) -> DrainStatus | None:
    if pod.status.phase == "Failed" and pod.spec.restartPolicy in ("Never", "OnFailure", ""):
        return _OK
    return _OK if pod.status.phase == "Succeeded" else None


def _on_completion(_: DrainContext, pod: core.Pod) -> DrainStatus | None:
    return _WAIT if pod.metadata.annotations.get(annotation_keys.SAFE_TO_EVICT) == "on-completion" else None


def _replicated(context: DrainContext, pod: core.Pod) -> DrainStatus | None:
    owner = controller_of(pod)
    custom = owner is not None and owner.kind not in _REPLICATED_KINDS
    if owner is None or (context.options.skip_nodes_with_custom_controller_pods and custom):
        return _block(BlockingReason.NOT_REPLICATED)
    return None


def _system(context: DrainContext, pod: core.Pod) -> DrainStatus | None:
    young = (
        context.now - pods.creation_seconds(pod) <= context.options.blocking_system_pod_distruption_timeout
    )
    if not context.options.skip_nodes_with_system_pods or pod.metadata.namespace != "kube-system":
        return None
    if young and not context.budgets.has_matching(pod):
        return _block(BlockingReason.UNMOVABLE_KUBE_SYSTEM_POD)
    return None


def _not_safe_to_evict(_: DrainContext, pod: core.Pod) -> DrainStatus | None:
    if pod.metadata.annotations.get(annotation_keys.SAFE_TO_EVICT) == "false":
        return _block(BlockingReason.NOT_SAFE_TO_EVICT)
    return None


def _local_storage(context: DrainContext, pod: core.Pod) -> DrainStatus | None:
    if context.options.skip_nodes_with_local_storage and _has_local_storage(pod):
        return _block(BlockingReason.LOCAL_STORAGE_REQUESTED)
    return None


def _has_local_storage(pod: core.Pod) -> bool:
    text = pod.metadata.annotations.get(annotation_keys.SAFE_TO_EVICT_LOCAL_VOLUMES, "")
    safe = text.split(",")  # a space after a comma belongs to the next name, and no volume has such a name
    for volume in pod.spec.volumes:
        source = volume.volumeSource
        in_memory = source.emptyDir.medium == "Memory"
        local = source.HasField("hostPath") or (source.HasField("emptyDir") and not in_memory)
        if local and volume.name not in safe:
            return True
    return False


def _pdb(context: DrainContext, pod: core.Pod) -> DrainStatus | None:
    return _block(BlockingReason.NOT_ENOUGH_PDB) if context.budgets.is_exhausted(pod) else None


RULES: tuple[Rule, ...] = (
    _binding,
    _mirror,
    _long_terminating,
    _replica_count,
    _daemon_set,
    _safe_to_evict,
    _terminal,
    _on_completion,
    _replicated,
    _system,
    _not_safe_to_evict,
    _local_storage,
    _pdb,
)
"""The rules, in upstream's order."""
