"""What the status ConfigMap says. Pure. Source: cluster-autoscaler 1.36, clusterstate api."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autoscaler.planning.cluster_state import AcceptableRange, ClusterState, Readiness
from autoscaler.planning.observation import CloudView
from machinery.clock import rfc3339


@dataclass(slots=True)
class StatusBuilder:
    """Builds statuses and remembers since when each condition is what it is."""

    _since: dict[tuple[str, str], tuple[str, float]] = field(default_factory=dict)

    def build(
        self, state: ClusterState, view: CloudView, candidates: Sequence[str], now: float
    ) -> Mapping[str, Any]:
        """The document; its times change from loop to loop."""
        by_group: dict[str, int] = dict.fromkeys(view.groups, 0)
        for name in candidates:
            group = view.group_of_node.get(name)
            if group in by_group:
                by_group[group] += 1
        scaling = any(state.is_scaling_up(group) for group in view.groups)
        return {
            "time": rfc3339(now),
            "autoscalerStatus": "Running",
            "clusterWide": {
                "health": self._health("", state.is_cluster_healthy(), state.total, now),
                "scaleUp": self._part("", "scaleUp", "InProgress" if scaling else "NoActivity", now),
                "scaleDown": self._scale_down("", len(candidates), now),
            },
            "nodeGroups": [self._group(state, view, group, by_group[group], now) for group in view.groups],
        }

    def _group(
        self, state: ClusterState, view: CloudView, group: str, candidates: int, now: float
    ) -> dict[str, Any]:
        found = view.groups[group]
        row = state.readiness.get(group, Readiness())
        target = state.ranges.get(group, AcceptableRange(0, 0, 0)).target
        health = self._health(group, state.is_group_healthy(group), row, now)
        health |= {"cloudProviderTarget": target, "minSize": found.min, "maxSize": found.max}
        failure = state.backoff.active(group, now)
        status = "InProgress" if state.is_scaling_up(group) else "NoActivity"
        if failure is not None and status == "NoActivity":
            status = "Backoff"
        scale_up = self._part(group, "scaleUp", status, now)
        if failure is not None:
            scale_up["backoffInfo"] = {
                "errorCode": failure.error_code,
                "errorMessage": failure.error_message,
            }
        return {
            "name": group,
            "health": health,
            "scaleUp": scale_up,
            "scaleDown": self._scale_down(group, candidates, now),
        }

    def _health(self, group: str, healthy: bool, row: Readiness, now: float) -> dict[str, Any]:
        part = self._part(group, "health", "Healthy" if healthy else "Unhealthy", now)
        part["nodeCounts"] = {
            "registered": {
                "total": len(row.registered),
                "ready": len(row.ready),
                "notStarted": len(row.not_started),
                "beingDeleted": len(row.deleted),
                "unready": {"total": len(row.unready), "resourceUnready": 0},
            },
            "longUnregistered": len(row.long_unregistered),
            "unregistered": len(row.unregistered),
        }
        return part

    def _scale_down(self, group: str, candidates: int, now: float) -> dict[str, Any]:
        status = "CandidatesPresent" if candidates else "NoCandidates"
        return {**self._part(group, "scaleDown", status, now), "candidates": candidates}

    def _part(self, group: str, name: str, status: str, now: float) -> dict[str, Any]:
        former = self._since.get((group, name))
        since = former[1] if former is not None and former[0] == status else now
        self._since[group, name] = (status, since)
        return {"status": status, "lastProbeTime": rfc3339(now), "lastTransitionTime": rfc3339(since)}
