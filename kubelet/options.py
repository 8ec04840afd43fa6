"""The options of a kubelet process. Times in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nominee.kubelet import emulation
from nominee.machinery.api.pb import core
from nominee.machinery.resources.pod_resources import EMULATED_EPHEMERAL_STORAGE, EPHEMERAL_STORAGE


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

    def of(self, pod: core.Pod, restarts: int = 0) -> Delays:
        """Return the delays of a run of a pod's containers, by its annotations."""
        values = emulation.of(pod, restarts)
        if not values:
            return self
        return Delays(
            start=emulation.seconds(values, "start-delay", self.start),
            ready=emulation.seconds(values, "ready-delay", self.ready),
            stop=emulation.seconds(values, "stop-delay", self.stop),
            actuation=emulation.seconds(values, "actuation-delay", self.actuation),
        )


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


def stop_seconds_max(pod: core.Pod, grace_seconds: float) -> float:
    """Return how long containers may take to stop, with their preStop hooks, before they are killed.

    A hook may use up the grace period; then they still have two seconds. Source: kubelet 1.36,
    calculateEffectiveGracePeriod; killContainer (minimumGracePeriodInSeconds).
    """
    grace = max(grace_seconds, 1.0)
    return max(grace, min(pre_stop_sleep(pod), grace) + 2.0)


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
