"""Delays of scale-down after a scale-up, a deletion or a failure. Pure.

Times are seconds of `Clock.monotonic`. Source: cluster-autoscaler 1.36, static autoscaler and
ScaleDownCandidatesDelayProcessor.
"""

from __future__ import annotations

from nominee.autoscaler.options import Options

_NEVER = float("-inf")


class Cooldowns:
    """Delay scale-down in the cluster or, with `--scale-down-delay-type-local`, in a group.

    In the cluster a deletion counts when it starts, and a failure is a taint that could not be added. In a
    group a deletion counts when the provider has deleted the node, and a failure is an error of the provider.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._scale_up = self._deletion = self._failure = _NEVER
        self._group_scale_ups: dict[str, float] = {}
        self._group_deletions: dict[str, float] = {}
        self._group_failures: dict[str, float] = {}

    def scaled_up(self, now: float) -> None:
        self._scale_up = now

    def deletion_started(self, now: float) -> None:
        self._deletion = now

    def deletion_failed(self, now: float) -> None:
        self._failure = now

    def group_scaled_up(self, group: str, now: float) -> None:
        self._group_scale_ups[group] = now

    def group_deleted(self, group: str, now: float) -> None:
        self._group_deletions[group] = now

    def group_failed(self, group: str, now: float) -> None:
        self._group_failures[group] = now

    def active(self, now: float) -> bool:
        """Report whether no node of the cluster may be deleted now; False with delays by group."""
        options = self._options
        return not options.scale_down_delay_type_local and (
            self._scale_up + options.scale_down_delay_after_add > now
            or self._failure + options.scale_down_delay_after_failure > now
            or self._deletion + options.scale_down_delay_after_delete > now
        )

    def delays(self, group: str, now: float) -> bool:
        """Report whether nodes of this group are no candidates now; False with delays of the cluster."""
        options = self._options
        return options.scale_down_delay_type_local and (
            self._group_scale_ups.get(group, _NEVER) + options.scale_down_delay_after_add > now
            or self._group_deletions.get(group, _NEVER) + options.scale_down_delay_after_delete > now
            or self._group_failures.get(group, _NEVER) + options.scale_down_delay_after_failure > now
        )

    def in_some_group(self, now: float) -> bool:
        """Report whether nodes of the cluster, or of a group, may not be deleted now."""
        groups = {*self._group_scale_ups, *self._group_deletions, *self._group_failures}
        return self.active(now) or any(self.delays(group, now) for group in groups)
