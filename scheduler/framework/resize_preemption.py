"""Options of kube-scheduler for deferred resizes (KEP-5836)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Flavour(StrEnum):
    """The design that is followed where the KEP's text and Kubernetes 1.37 differ."""

    KEP = "kep"
    V1_37 = "1.37"


class Tracking(StrEnum):
    """KEP-5836, "Tracking Preemption Nominations to Avoid Double Preemption", options 1 to 4."""

    NONE = "none"
    MEMORY = "memory"
    NOMINATED_NODE_NAME = "nominated-node-name"
    SPEC_NODE_NAME = "spec-node-name"


class Fit(StrEnum):
    """The requests that other pods of the node count for (KEP-5836, "Risk of Additional Preemption")."""

    SCHEDULER = "scheduler"  # the most of desired, allocated and actual
    KUBELET = "kubelet"  # the most of allocated and actual


@dataclass(frozen=True, slots=True)
class ResizePreemption:
    """The options of kube-scheduler's process here; the defaults are the KEP's alpha."""

    flavour: Flavour = Flavour.KEP
    tracking: Tracking = Tracking.NONE
    fit: Fit = Fit.SCHEDULER


ALPHA: Final = ResizePreemption()
