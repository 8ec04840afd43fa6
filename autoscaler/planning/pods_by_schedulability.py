"""Pods of the cluster by the scheduler's result for them. Pure.

Source: cluster-autoscaler 1.36, utils/kubernetes listers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nominee.autoscaler.options import Compat, Options
from nominee.autoscaler.planning.pods import is_unschedulable
from nominee.machinery.api import objects
from nominee.machinery.api.pb import core


@dataclass(slots=True)
class PodsBySchedulability:
    """Pods that have not completed; those that the scheduler has not tried are only in `unprocessed`."""

    scheduled: list[core.Pod] = field(default_factory=list)
    nominated: list[core.Pod] = field(default_factory=list)
    unschedulable: list[core.Pod] = field(default_factory=list)
    unprocessed: list[core.Pod] = field(default_factory=list)
    """Pods of the schedulers in `--bypassed-scheduler-names` that have not been tried."""


def arrange_by_schedulability(pods: Iterable[core.Pod], options: Options) -> PodsBySchedulability:
    """Sort pods by schedulability.

    As 1.35, nominated pods are not distinguished here: they count only if they are Unschedulable, too.
    """
    result = PodsBySchedulability()
    for pod in pods:
        if pod.status.phase in ("Succeeded", "Failed"):
            continue
        if pod.spec.nodeName:
            result.scheduled.append(pod)
        elif objects.is_terminating(pod):
            continue
        elif pod.status.nominatedNodeName and options.compat is not Compat.V1_35:
            result.nominated.append(pod)
        elif is_unschedulable(pod):
            result.unschedulable.append(pod)
        elif pod.spec.schedulerName in options.bypassed_scheduler_names:
            result.unprocessed.append(pod)
    return result
