"""Whether a pod may be moved off its node: a table of rules, the first decisive one wins.

Source: cluster-autoscaler 1.36, drainability rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto

from autoscaler.options import Options
from autoscaler.planning import annotation_keys, pods
from autoscaler.planning.budgets import RemainingBudgets
from autoscaler.planning.observation import ControllerKey
from machinery.api.pb import core

_REPLICATING = frozenset(("ReplicationController", "Job", "ReplicaSet", "StatefulSet"))
_COUNTED = frozenset(("ReplicationController", "ReplicaSet", "StatefulSet"))


class Outcome(Enum):
    """What a rule says; None of a rule is nothing."""

    SKIP = auto()
    """Nothing needs to be done about the pod."""
    MOVE = auto()
    BLOCK = auto()
    WAIT = auto()
    """It may go when it has completed, not before."""


class BlockingReason(StrEnum):
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
class Verdict:
    outcome: Outcome
    reason: BlockingReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the rules look at. `controllers` None: not looked at (an empty node's last check)."""

    options: Options
    budgets: RemainingBudgets
    controllers: Mapping[ControllerKey, int | None] | None
    binding: frozenset[str] = frozenset()
    """Uids of pods whose nomination holds their node."""
    now: float = 0.0

    def verdict(self, pod: core.Pod) -> Verdict:
        for rule in RULES:
            found = rule(self, pod)
            if found is not None:
                return found
        return Verdict(Outcome.MOVE)


@dataclass(slots=True)
class Moves:
    """What removing a node means for its pods."""

    move: list[core.Pod] = field(default_factory=list)
    daemons: list[core.Pod] = field(default_factory=list)
    blocking: core.Pod | None = None
    reason: BlockingReason | None = None
    waiting: core.Pod | None = None

    @property
    def blocked(self) -> str:
        """`pod/Reason`, or "" where nothing blocks."""
        return f"{self.blocking.metadata.name}/{self.reason}" if self.blocking is not None else ""


def moves(rules: Rules, found: Iterable[core.Pod]) -> Moves:
    """Which pods of a node must move; ends at the first that must not."""
    result = Moves()
    for pod in found:
        verdict = rules.verdict(pod)
        if verdict.outcome is Outcome.SKIP:
            continue
        if verdict.outcome is Outcome.BLOCK:
            return Moves(blocking=pod, reason=verdict.reason)
        if verdict.outcome is Outcome.WAIT and result.waiting is None:
            result.waiting = pod
        (result.daemons if pods.is_daemon(pod) else result.move).append(pod)
    return result


Rule = Callable[[Rules, core.Pod], Verdict | None]
_SKIP, _MOVE, _WAIT = Verdict(Outcome.SKIP), Verdict(Outcome.MOVE), Verdict(Outcome.WAIT)


def _block(reason: BlockingReason) -> Verdict:
    return Verdict(Outcome.BLOCK, reason)


def _binding(rules: Rules, pod: core.Pod) -> Verdict | None:
    return _block(BlockingReason.BINDING) if pod.metadata.uid in rules.binding else None


def _mirror(_: Rules, pod: core.Pod) -> Verdict | None:
    return _SKIP if pods.is_mirror(pod) else None


def _long_terminating(rules: Rules, pod: core.Pod) -> Verdict | None:
    return _SKIP if pods.is_long_terminating(pod, rules.now) else None


def _controller(rules: Rules, pod: core.Pod) -> Verdict | None:
    owner = pods.controller_of(pod)
    if rules.controllers is None or owner is None:
        return None
    if owner.kind not in _REPLICATING and owner.kind != "DaemonSet":
        return None
    key = ControllerKey(owner.kind, pod.metadata.namespace, owner.name)
    if key not in rules.controllers:
        return _block(BlockingReason.CONTROLLER_NOT_FOUND)
    replicas = rules.controllers[key]
    if owner.kind in _COUNTED and replicas is not None and replicas < rules.options.min_replica_count:
        return _block(BlockingReason.MIN_REPLICAS_REACHED)
    return None


def _daemon(_: Rules, pod: core.Pod) -> Verdict | None:
    return _MOVE if pods.is_daemon(pod) else None


def _safe_to_evict(_: Rules, pod: core.Pod) -> Verdict | None:
    return _MOVE if pod.metadata.annotations.get(annotation_keys.SAFE_TO_EVICT) == "true" else None


def _terminal(_: Rules, pod: core.Pod) -> Verdict | None:
    if pod.status.phase == "Failed" and pod.spec.restartPolicy in ("Never", "OnFailure", ""):
        return _MOVE
    return _MOVE if pod.status.phase == "Succeeded" else None


def _on_completion(_: Rules, pod: core.Pod) -> Verdict | None:
    return _WAIT if pod.metadata.annotations.get(annotation_keys.SAFE_TO_EVICT) == "on-completion" else None


def _replicated(rules: Rules, pod: core.Pod) -> Verdict | None:
    owner = pods.controller_of(pod)
    known = owner is not None and owner.kind in _REPLICATING
    if owner is None or (rules.options.skip_nodes_with_custom_controller_pods and not known):
        return _block(BlockingReason.NOT_REPLICATED)
    return None


def _system(rules: Rules, pod: core.Pod) -> Verdict | None:
    young = rules.now - pods.created(pod) <= rules.options.blocking_system_pod_distruption_timeout
    if not rules.options.skip_nodes_with_system_pods or pod.metadata.namespace != "kube-system":
        return None
    if young and not rules.budgets.covering(pod):
        return _block(BlockingReason.UNMOVABLE_KUBE_SYSTEM_POD)
    return None


def _not_safe_to_evict(_: Rules, pod: core.Pod) -> Verdict | None:
    if pod.metadata.annotations.get(annotation_keys.SAFE_TO_EVICT) == "false":
        return _block(BlockingReason.NOT_SAFE_TO_EVICT)
    return None


def _local_storage(rules: Rules, pod: core.Pod) -> Verdict | None:
    if rules.options.skip_nodes_with_local_storage and _has_local_storage(pod):
        return _block(BlockingReason.LOCAL_STORAGE_REQUESTED)
    return None


def _has_local_storage(pod: core.Pod) -> bool:
    text = pod.metadata.annotations.get(annotation_keys.SAFE_TO_EVICT_LOCAL_VOLUMES, "")
    safe = {name.strip() for name in text.split(",")}
    for volume in pod.spec.volumes:
        source = volume.volumeSource
        in_memory = source.emptyDir.medium == "Memory"
        local = source.HasField("hostPath") or (source.HasField("emptyDir") and not in_memory)
        if local and volume.name not in safe:
            return True
    return False


def _budget(rules: Rules, pod: core.Pod) -> Verdict | None:
    return _block(BlockingReason.NOT_ENOUGH_PDB) if rules.budgets.exhausted_for(pod) else None


RULES: tuple[Rule, ...] = (
    _binding,
    _mirror,
    _long_terminating,
    _controller,
    _daemon,
    _safe_to_evict,
    _terminal,
    _on_completion,
    _replicated,
    _system,
    _not_safe_to_evict,
    _local_storage,
    _budget,
)
