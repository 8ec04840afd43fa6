"""Whether a cluster is never at rest, because its objects ask for work that does not end. No I/O."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Final

from nominee.lab.chaos.cases.perturbations import JUMP_SECONDS
from nominee.lab.chaos.rest.due import tolerated_seconds
from nominee.lab.chaos.rest.state import State
from nominee.lab.chaos.rest.workloads.owners import CONTROLLERS
from nominee.lab.history.revision import Revision
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import controller_of, has_ended, is_terminating, metadata_of
from nominee.machinery.api.pb import batch, core
from nominee.machinery.runtime.clock import from_time
from nominee.machinery.wire.values.cron_schedule import NEVER, parse

REPEATED_SECONDS: Final = 160.0
"""What comes again within this time leaves no time for a comparison before and after a restart."""
_LATE_SECONDS: Final = JUMP_SECONDS + 30.0
"""A Job may start so late, by a clock that is behind and a controller that has begun to lead just now."""
_EVICTED_SECONDS: Final = 5.0
"""A pod that is not evicted so long after it should be is no excuse."""


def runs_on(state: State) -> bool:
    """Return whether work comes again and again, in a time that the rules cannot wait for.

    A CronJob of each minute or two starts Jobs. The time of its last one shows whether it does: one that is
    kept from it, as by a Job that runs, is at rest, and one that was forgotten is found by a restart. And the
    owner of a pod that tolerates a taint NoExecute for seconds creates another one after each eviction, which
    goes to the same node if no other one will do: it is never older than these seconds.
    """
    return bool(busy_namespaces(state))


def has_back_offs(state: State) -> bool:
    """Return whether a container waits that starts at once when its kubelet does, which knows no back-off.

    Source: kubelet 1.36, NewMainKubelet.
    """
    return any(
        container.state.waiting.reason == "CrashLoopBackOff"
        for pod in state.of(kinds.POD)
        for container in (*pod.status.initContainerStatuses, *pod.status.containerStatuses)
    )


def busy_namespaces(state: State) -> frozenset[str]:
    """Return the namespaces with such work."""
    if CONTROLLERS not in state.running:
        return frozenset()
    found = itertools.chain(_frequent_cron_jobs(state), _replaced_pods(state))
    return frozenset(metadata_of(each).namespace for each in found)


def writes_elsewhere(writes: Iterable[Revision], namespaces: Collection[str]) -> Iterator[Revision]:
    """Yield the writes in other namespaces; objects without a namespace, as nodes, may follow the work."""
    yield from (each for each in writes if each.namespace and each.namespace not in namespaces)


def _frequent_cron_jobs(state: State) -> Iterator[batch.CronJob]:
    for each in state.of(kinds.CRON_JOB):
        if each.spec.suspend or is_terminating(each):
            continue
        with suppress(ValueError):  # without a schedule there are no Jobs
            schedule = parse(each.spec.schedule)  # a time zone makes it no more frequent
            last = max(from_time(each.status.lastScheduleTime), from_time(each.metadata.creationTimestamp))
            due = schedule.next(last)
            if due != NEVER and due - last < REPEATED_SECONDS and state.now < due + _LATE_SECONDS:
                yield each


def _replaced_pods(state: State) -> Iterator[core.Pod]:
    """Yield the pods of owners that are to be evicted from their nodes, and were created not long ago."""
    for pod, seconds in tolerated_seconds(state):
        age = state.now - from_time(pod.metadata.creationTimestamp)
        is_owned = controller_of(pod) is not None and not has_ended(pod)
        if is_owned and age - _EVICTED_SECONDS < seconds < REPEATED_SECONDS:
            yield pod
