"""Findings of generated scenarios that are known behaviour of Kubernetes, with reason and link."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_ACTUATOR = (
    "https://github.com/kubernetes/autoscaler/blob/cluster-autoscaler-1.36.0/cluster-autoscaler/core/scaledown/"
    "actuation/actuator.go"
)

ACCEPTED: Final[tuple[Mapping[str, str], ...]] = (
    {
        "case": "autoscaler:autoscaler.scaledown.taint.after=error*",
        "observation": "has the taint ToBeDeletedByClusterAutoscaler, and is not being deleted",
        "reason": "a taint whose write is reported as failed stays for minutes; only nodes that were tainted "
        "are cleaned",
        "link": _ACTUATOR,
    },
)
