"""The document of the status ConfigMap. Pure. Times are seconds since the epoch, or None.

As upstream's, it has every structure even if that is empty, but no empty text or number of candidates.
Source: cluster-autoscaler 1.36, clusterstate and its api.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from nominee.autoscaler.planning.node_groups.backoff import GroupBackoff
from nominee.autoscaler.planning.node_groups.cluster_state import (
    AcceptableRange,
    ClusterStateRegistry,
    Readiness,
)
from nominee.autoscaler.planning.objects.observation import CloudView, NodeGroup
from nominee.machinery.runtime.clock import Moment, rfc3339, rfc3339_micro

ERROR_CHARACTERS_MAX = 500
TRUNCATED = "<truncated>"
_Condition = dict[str, object]


def timestamp(now: float) -> str:
    """Format a time as the status has it: `2026-08-22 10:11:12.5 +0000 UTC`."""
    date, _, rest = rfc3339_micro(now).removesuffix("Z").partition("T")
    return f"{date} {rest.rstrip('0').rstrip('.')} +0000 UTC"


def initializing(now: float, message: str = "") -> Mapping[str, object]:
    """Return the status before the first loop, or of a cluster that must not be scaled."""
    never = {"lastProbeTime": None, "lastTransitionTime": None}
    parts = {"health": never | {"nodeCounts": _node_counts(Readiness())}}
    parts |= {name: dict(never) for name in ("scaleUp", "scaleDown")}
    return _without_empty(
        {
            "time": timestamp(now),
            "autoscalerStatus": "Initializing",
            "message": message,
            "clusterWide": parts,
        },
        "message",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDownCandidates:
    """Unneeded nodes, and when scale-down was last planned."""

    nodes: Collection[str] = ()
    planned_at: float | None = None


@dataclass(slots=True)
class StatusBuilder:
    """Build statuses, and keep since when each condition has its status."""

    _since: dict[tuple[str, str], tuple[str, float | None]] = field(default_factory=dict)

    def build(
        self, registry: ClusterStateRegistry, view: CloudView, candidates: ScaleDownCandidates, at: Moment
    ) -> Mapping[str, object]:
        """Return the status after a loop."""
        by_group = Counter(view.group_of_node.get(name, "") for name in candidates.nodes)
        groups = [
            self._group(registry, group, by_group[group.id], candidates.planned_at, at)
            for group in view.groups.values()
        ]
        scaling = any(map(registry.is_scaling_up, view.groups))
        probed = registry.updated_at
        health = self._health("", registry.is_cluster_healthy(), registry.total_readiness, probed)
        scale_up = self._condition("", "scaleUp", "InProgress" if scaling else "NoActivity", probed)
        scale_down = self._scale_down("", len(candidates.nodes), candidates.planned_at)
        return _without_empty(
            {
                "time": timestamp(at.now),
                "autoscalerStatus": "Running",
                "clusterWide": {"health": health, "scaleUp": scale_up, "scaleDown": scale_down},
                "nodeGroups": groups,
            },
            "nodeGroups",
        )

    def _group(
        self,
        registry: ClusterStateRegistry,
        group: NodeGroup,
        candidates: int,
        planned_at: float | None,
        at: Moment,
    ) -> _Condition:
        """Return the status of a group; a group without nodes was never probed."""
        probed = registry.updated_at if group.id in registry.readiness else None
        row = registry.readiness.get(group.id, Readiness())
        healthy = registry.is_node_group_healthy(group.id)
        target = registry.ranges.get(group.id, AcceptableRange(0, 0, 0)).target
        backoff = registry.backoff.status(group.id, at.monotonic)
        if registry.is_scaling_up(group.id):
            status = "InProgress"
        elif not healthy:
            status = "Unhealthy"
        else:
            status = "Backoff" if backoff is not None else "NoActivity"
        sizes = {"cloudProviderTarget": target, "minSize": group.min, "maxSize": group.max}
        info = _backoff_info(backoff) if backoff is not None and status == "Backoff" else {}
        return {
            "name": group.id,
            "health": self._health(group.id, healthy, row, probed) | sizes,
            "scaleUp": self._condition(group.id, "scaleUp", status, probed) | {"backoffInfo": info},
            "scaleDown": self._scale_down(group.id, candidates, planned_at),
        }

    def _health(self, group: str, healthy: bool, row: Readiness, probed: float | None) -> _Condition:
        status = "Healthy" if healthy else "Unhealthy"
        return self._condition(group, "health", status, probed) | {"nodeCounts": _node_counts(row)}

    def _scale_down(self, group: str, candidates: int, probed: float | None) -> _Condition:
        status = "CandidatesPresent" if candidates else "NoCandidates"
        condition = self._condition(group, "scaleDown", status, probed)
        return _without_empty(condition | {"candidates": candidates}, "candidates")

    def _condition(self, group: str, name: str, status: str, probed: float | None) -> _Condition:
        former = self._since.get((group, name))
        since = former[1] if former is not None and former[0] == status else probed
        self._since[group, name] = (status, since)
        return {"status": status, "lastProbeTime": _time(probed), "lastTransitionTime": _time(since)}


def _node_counts(row: Readiness) -> _Condition:
    registered = {
        "total": len(row.registered),
        "ready": len(row.ready),
        "notStarted": len(row.not_started),
        "suspended": len(row.suspended),
        "beingDeleted": len(row.deleted),
        # Nodes lack a resource only while they are starting.
        "unready": {"total": len(row.unready), "resourceUnready": 0},
    }
    return {
        "registered": _without_empty(registered, "beingDeleted"),
        "longUnregistered": len(row.long_unregistered),
        "unregistered": len(row.unregistered),
    }


def _backoff_info(backoff: GroupBackoff) -> dict[str, str]:
    message = backoff.error_message
    if len(message) > ERROR_CHARACTERS_MAX:
        message = message[: ERROR_CHARACTERS_MAX - len(TRUNCATED)] + TRUNCATED
    return {"errorCode": backoff.error_code, "errorMessage": message}


def _without_empty(row: Mapping[str, object], *names: str) -> dict[str, object]:
    """Return the row without those of these fields that are empty, as Go's `omitempty`."""
    return {name: value for name, value in row.items() if value or name not in names}


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else rfc3339(seconds)
