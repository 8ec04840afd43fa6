"""The traces of preemptions in the history: marks on victims, and Preempted events."""

from __future__ import annotations

import re
from typing import Final

from nominee.machinery.api.objects import get_condition
from nominee.machinery.api.pb import core

_NOTE: Final = re.compile(r"Preempted by pod (\S+) on node")
PODS_MAX: Final = 10_000
"""Pods that do not exist any more and are kept, since their Preempted events may follow."""


def is_marked(pod: core.Pod) -> bool:
    """Return whether a scheduler has chosen the pod as a victim (KEP-3329)."""
    condition = get_condition(pod.status.conditions, "DisruptionTarget")
    return (
        condition is not None and condition.status == "True" and condition.reason == "PreemptionByScheduler"
    )


def preemptor_uid(event: core.Event) -> str:
    """Return the uid of the pod for which the event's pod was evicted; "" for another event.

    Source: kube-scheduler 1.36, preemption Executor; the note has the uid since 1.24.
    """
    if event.reason != "Preempted" or event.involvedObject.kind != "Pod":
        return ""
    if event.related.uid:
        return event.related.uid
    note = _NOTE.match(event.message)
    return note[1] if note else ""
