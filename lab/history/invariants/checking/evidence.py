"""The evidence that a checker needs and etcd's history does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import ObjectKey

EXPENDABLE_BELOW: Final = -10
"""The default of --expendable-pods-priority-cutoff."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDown:
    """Options of the autoscaler: times in seconds, and the share of a node in use from which it is needed.

    Pods whose priority is below `expendable_below` do not count for it.
    """

    unneeded_seconds: float
    scan_seconds: float
    threshold: float
    expendable_below: int = EXPENDABLE_BELOW


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentSettings:
    """The cluster's configuration; None where it is unknown, or was not the same all the time."""

    clears_nominations: bool | None = None
    """ClearingNominatedNodeNameAfterBinding of the API server."""
    nominates_deferred_resizes: bool = False
    """--allow-nominated-node-name-of-deferred-resizes of the API server (KEP-5836, Option 3)."""
    preempts_for_resizes: bool | None = None
    """InPlacePodVerticalScalingSchedulerPreemption of the scheduler."""
    protects_nominated_nodes: bool | None = None
    """--compat=fixed of the autoscaler."""
    scale_down: ScaleDown | None = None
    """Options of the autoscaler."""
    lists_newest: frozenset[str] = frozenset()
    """The components all of whose processes begin with the newest state (WatchListClient)."""
    records_acknowledged: bool = False
    """The evidence will have the acknowledged writes."""
    observes_answers: bool = False
    """The checkers get the answers of the API servers, each when the history has come to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """A write whose success the API server has reported to a client.

    `resource_version` is that of the answer. `deleted`: a deletion was acknowledged; the object may still be
    terminating.
    """

    kind: AnyKind
    namespace: str
    name: str
    uid: str
    resource_version: int
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointedPod:
    """A pod in a kubelet's checkpoint.

    `requests` are the allocated ones by container and resource, as written ("500m"); `running`: one of its
    containers runs.
    """

    requests: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    running: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The cluster when the history ends; None: not available, and invariants that need it are not checked.

    `now` is in seconds since the epoch. `queued_pods` are those that the schedulers' `/debug/queue` shows in
    a queue, on Permit or in binding. `checkpoints` are the files of running kubelets: pods by uid, by node.
    `errors` are those that processes did not foresee, each a line. `scaled_down` are the revisions at which
    an autoscaler asked the cloud to delete a node, by node.
    """

    now: float
    acknowledged: tuple[Acknowledged, ...] | None = None
    queued_pods: frozenset[ObjectKey] | None = None
    checkpoints: Mapping[str, Mapping[str, CheckpointedPod]] | None = None
    errors: tuple[str, ...] | None = None
    scaled_down: Mapping[str, Sequence[int]] | None = None

    def may_be_scaled_down(self, node: str, since: int, until: int) -> bool:
        """Return whether an autoscaler may have asked to delete a node between two revisions.

        It may where that is not known: the history does not have who deleted a node.
        """
        return self.scaled_down is None or any(since <= at < until for at in self.scaled_down.get(node, ()))


DELETED_BY_OTHERS: Final = {
    "deleted-by-others": "the node had the autoscaler's taint, and another client deleted it or its "
    "instance: the autoscaler had not asked the cloud to do so"
}
"""The exception of the checkers that ask `Evidence.may_be_scaled_down`."""
