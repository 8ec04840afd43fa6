"""The options of a kubelet process. Times in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import EMULATED_EPHEMERAL_STORAGE, EPHEMERAL_STORAGE
from nominee.machinery.wire.values.scalars import parse_seconds

ANNOTATION = "nominee.dev/"
"""Pods may override a delay: `nominee.dev/start-delay: 5s`."""
_EXIT_CODE_DIGITS = 9
"""More are no int32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """The time that the emulated runtime takes."""

    start: float = 0.0
    """From admission until the containers run."""
    ready: float = 0.0
    """From running until ready."""
    stop: float = 0.0
    """From the request to stop until the containers have stopped; never longer than the grace period."""
    actuation: float = 0.0
    """From an allocated resize until it is in force."""

    def of(self, pod: core.Pod) -> Delays:
        """Return the delays of a pod, by its annotations; one that cannot be read does not count."""
        annotations = pod.metadata.annotations
        if not any(name.startswith(ANNOTATION) for name in annotations):
            return self
        return Delays(
            start=_read(annotations, "start-delay", self.start),
            ready=_read(annotations, "ready-delay", self.ready),
            stop=_read(annotations, "stop-delay", self.stop),
            actuation=_read(annotations, "actuation-delay", self.actuation),
        )


def run_duration(pod: core.Pod) -> float | None:
    """Return after how many seconds of running the pod's containers exit (an annotation), or None.

    The restartPolicy decides whether they start again, as for any container that exits.
    """
    seconds = _read(pod.metadata.annotations, "run-duration", -1.0)
    return None if seconds < 0 else seconds


def exit_code(pod: core.Pod) -> int:
    """Return the exit code that the containers exit with after their run duration."""
    text = pod.metadata.annotations.get(f"{ANNOTATION}exit-code", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _EXIT_CODE_DIGITS else 0


def pre_stop_sleep(pod: core.Pod) -> float:
    """Return for how long the longest preStop hook sleeps (lifecycle.preStop.sleep)."""
    return max(
        (
            float(container.lifecycle.preStop.sleep.seconds)
            for container in (*pod.spec.containers, *pod.spec.initContainers)
            if container.lifecycle.preStop.HasField("sleep")
        ),
        default=0.0,
    )


def _read(annotations: Mapping[str, str], name: str, default: float) -> float:
    text = annotations.get(f"{ANNOTATION}{name}")
    if text is None:
        return default
    try:
        return max(parse_seconds(text), 0.0)
    except ValueError:
        return default


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShape:
    """Capacity, labels and policies of the nodes of this process."""

    capacity: Mapping[str, str] = field(
        default_factory=lambda: {
            "cpu": "4",
            "memory": "32Gi",
            "pods": "110",
            EPHEMERAL_STORAGE: EMULATED_EPHEMERAL_STORAGE,
        }
    )
    labels: Mapping[str, str] = field(default_factory=dict)
    zones: tuple[str, ...] = ()
    """Nodes are spread over these, by number."""
    region: str = ""
    cpu_manager_policy: str = "none"
    memory_manager_policy: str = "None"
    swap_behavior: str = "NoSwap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeats:
    """The intervals of a node's heartbeats."""

    status_frequency: float = 10.0
    """The status is checked so often, and written when it changed."""
    status_report_frequency: float = 300.0
    """The status is written so often when it did not change."""
    lease_duration: float = 40.0

    @property
    def lease_interval(self) -> float:
        """Return the interval of renewals: four in the lease's duration, as upstream."""
        return self.lease_duration * 0.25
