"""Options of the autoscaler: upstream's flags and defaults. Times in seconds. Pure.

Source: cluster-autoscaler 1.36, config flags.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum

from nominee.machinery.features.gates import Version
from nominee.machinery.wire.values.scalars import parse_seconds

GIB = 1024**3


class Compat(StrEnum):
    """Behaviour with regard to `status.nominatedNodeName`."""

    V1_35 = "1.35"
    """Only Unschedulable pods count as nominated: a pod in PreBind is ignored (kubernetes#125491)."""
    V1_36 = "1.36"
    """Nominated pods count as load on their node (kubernetes/autoscaler#9607)."""
    FIXED = "fixed"
    """As 1.36, and a pod that is nominated to a node blocks it (docs/design/005-autoscaler.md)."""

    @classmethod
    def of(cls, version: Version) -> Compat:
        """Return the behaviour of the autoscaler that was released with this version of Kubernetes."""
        return cls.V1_35 if version <= Version(1, 35) else cls.V1_36


@dataclass(frozen=True, slots=True)
class Range:
    """Lower and upper limit, written `min:max`."""

    min: int
    max: int

    @classmethod
    def parse(cls, text: str) -> Range:
        """Parse `min:max`.

        Raises:
            ValueError: the text has another form, or the minimum exceeds the maximum.
        """
        low, colon, high = text.partition(":")
        if not colon or not low.isdecimal() or not high.isdecimal() or int(low) > int(high):
            raise ValueError(f"{text!r}: expected min:max")
        return cls(int(low), int(high))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options; each field is a flag with underscores instead of dashes."""

    compat: Compat = Compat.V1_36
    scan_interval: float = 10.0
    scale_down_enabled: bool = True
    scale_down_unneeded_time: float = 600.0
    scale_down_unready_time: float = 1200.0
    scale_down_utilization_threshold: float = 0.5
    scale_down_gpu_utilization_threshold: float = 0.5
    scale_down_delay_after_add: float = 600.0
    scale_down_delay_after_delete: float = 0.0
    scale_down_delay_after_failure: float = 180.0
    scale_down_delay_type_local: bool = False
    scale_down_unready_enabled: bool = True
    scale_down_simulation_timeout: float = 30.0
    unremovable_node_recheck_timeout: float = 300.0
    max_scale_down_parallelism: int = 10
    max_drain_parallelism: int = 1
    max_bulk_soft_taint_count: int = 10
    node_delete_delay_after_taint: float = 5.0
    node_deletion_delay_timeout: float = 120.0
    cordon_node_before_terminating: bool = True
    max_graceful_termination_sec: int = 600
    max_pod_eviction_time: float = 120.0
    ignore_daemonsets_utilization: bool = False
    ignore_mirror_pods_utilization: bool = False
    daemonset_eviction_for_empty_nodes: bool = False
    daemonset_eviction_for_occupied_nodes: bool = True
    force_ds: bool = False
    scale_up_from_zero: bool = True
    frequent_loops_enabled: bool = True
    bypassed_scheduler_names: tuple[str, ...] = ()
    expander: str = "least-waste"
    max_nodes_per_scaleup: int = 1000
    balance_similar_node_groups: bool = False
    max_nodes_total: int = 0
    cores_total: Range = Range(0, 320_000)
    memory_total: Range = Range(0, 6_400_000)
    """GiB."""
    initial_node_group_backoff_duration: float = 300.0
    max_node_group_backoff_duration: float = 1800.0
    node_group_backoff_reset_timeout: float = 10_800.0
    max_node_provision_time: float = 900.0
    max_node_startup_time: float = 900.0
    ok_total_unready_count: int = 3
    max_total_unready_percentage: float = 45.0
    new_pod_scale_up_delay: float = 0.0
    expendable_pods_priority_cutoff: int = -10
    skip_nodes_with_system_pods: bool = True
    blocking_system_pod_distruption_timeout: float = 3600.0
    skip_nodes_with_local_storage: bool = True
    skip_nodes_with_custom_controller_pods: bool = True
    min_replica_count: int = 0
    enforce_node_group_min_size: bool = False
    record_duplicated_events: bool = False
    write_status_configmap: bool = True
    status_config_map_name: str = "cluster-autoscaler-status"
    namespace: str = "kube-system"
    nomination_timeout: float = 900.0
    """`fixed` only: how long a nomination blocks the deletion of its node; as long as Permit may wait."""


_DURATIONS = frozenset(
    f.name for f in fields(Options) if f.type == "float" and not f.name.endswith(("threshold", "percentage"))
)
HELP: Mapping[str, str] = {
    "compat": "Behaviour with regard to nominatedNodeName: of 1.35 and earlier, of 1.36, or of 1.36 without "
    "its known gaps (fixed).  [default: as --emulated-version]",
    "record_duplicated_events": "Do not limit events to one of each reason about an object in five minutes.",
    "force_ds": "Reserve room on new nodes for pods of all suitable DaemonSets, not only of running ones.",
    "scale_down_delay_type_local": "Apply the scale-down delays to each node group instead of the cluster.",
    "scale_up_from_zero": "Scale up a cluster without ready nodes.",
    "expander": "random, most-pods, least-waste or least-nodes; a comma-separated list is applied in order.",
    "nomination_timeout": "With --compat=fixed: how long a nominated pod blocks its node.",
}


def is_duration(name: str) -> bool:
    return name in _DURATIONS


def flag(name: str) -> str:
    """Return the flag of a field: `--scan-interval` of `scan_interval`."""
    return f"--{name.replace('_', '-')}"


def read(name: str, text: str) -> object:
    """Parse the value of a field's flag.

    Raises:
        ValueError: the value is invalid; the text says what is expected.
    """
    default = getattr(Options(), name)
    if name in _DURATIONS:
        return parse_seconds(text)
    if isinstance(default, Compat):
        return Compat(text)
    if isinstance(default, Range):
        return Range.parse(text)
    if isinstance(default, tuple):
        return tuple(filter(None, text.split(",")))
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise ValueError(f"{text!r}: expected true or false")
        return text.lower() == "true"
    return type(default)(text)
