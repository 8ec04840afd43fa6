"""The pods that failed, also those that their controllers have deleted since. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

from nominee.lab.chaos.rest.past.pod_writes import pod_writes
from nominee.lab.history.revision import Revision

_FAILED = "Failed"


def failed_pods(history: Iterable[Revision]) -> frozenset[str]:
    """Return the uids of the pods that writes of a history have made Failed."""
    return frozenset(
        pod.metadata.uid
        for _, before, pod in pod_writes(history)
        if pod.status.phase == _FAILED and (before is None or before.status.phase != _FAILED)
    )
