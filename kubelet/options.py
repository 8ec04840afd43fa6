"""How a kubelet process was started. Times in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from machinery.api.pb import core
from machinery.resources.pod_resources import EMULATED_EPHEMERAL_STORAGE, EPHEMERAL_STORAGE
from machinery.wire.scalars import parse_seconds

ANNOTATION = "nominee.dev/"
"""Pods may override a delay: `nominee.dev/start-delay: 5s`."""
_EXIT_CODE_DIGITS = 9
"""More are no int32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """How long the emulated runtime takes."""

    start: float = 0.0
    """From admission until the containers run."""
    ready: float = 0.0
    """From running until ready."""
    stop: float = 0.0
    """From the request to stop until the containers have stopped; never longer than the grace period."""
    actuation: float = 0.0
    """From an allocated resize until it is in force."""

    def of(self, pod: core.Pod) -> Delays:
        """With the pod's own annotations; one that cannot be read does not count."""
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
    """After how many seconds of running the pod's containers end by themselves (an annotation), or None.

    Whether they then start again is the restartPolicy's affair, as of any container that ends.
    """
    found = _read(pod.metadata.annotations, "run-duration", -1.0)
    return None if found < 0 else found


def exit_code(pod: core.Pod) -> int:
    """With what exit code they end then."""
    text = pod.metadata.annotations.get(f"{ANNOTATION}exit-code", "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _EXIT_CODE_DIGITS else 0


def pre_stop_sleep(pod: core.Pod) -> float:
    """How long the longest preStop hook sleeps (lifecycle.preStop.sleep)."""
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
    """What the nodes of this process are made with."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeats:
    """How a node shows that it lives."""

    status_frequency: float = 10.0
    """A node's status is looked at so often, and written when it changed."""
    status_report_frequency: float = 300.0
    """And written so often when it did not."""
    lease_duration: float = 40.0

    @property
    def lease_interval(self) -> float:
        """A lease is renewed four times in its duration, as upstream does."""
        return self.lease_duration * 0.25
