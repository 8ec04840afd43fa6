"""The settings of the vertical autoscaler, with the defaults of vertical-pod-autoscaler's updater."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Limits of the updater; times are in seconds, the rest are fractions.

    Source: vertical-pod-autoscaler 1.5, DeferredResizeUpdateTimeout, InProgressResizeUpdateTimeout,
    --min-replicas, --eviction-tolerance, --pod-update-threshold, --recommendation-margin-fraction.
    """

    deferred_timeout_seconds: float = 300.0
    in_progress_timeout_seconds: float = 3600.0
    min_replicas: int = 2
    eviction_tolerance: float = 0.5
    update_threshold: float = 0.1
    margin: float = 0.15
