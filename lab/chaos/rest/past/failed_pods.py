"""The pods that failed, also those that their controllers have deleted since. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

from nominee.lab.history.invariants.checking.pods import same_pod_before
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import POD

_FAILED = "Failed"


def failed_pods(history: Iterable[Revision]) -> frozenset[str]:
    """Return the uids of the pods that writes of a history have made Failed."""
    found: set[str] = set()
    for revision in history:
        if revision.kind is not POD or revision.is_state or not revision.is_readable:
            continue
        before, pod = same_pod_before(revision), revision.after(POD)
        if (
            pod is not None
            and pod.status.phase == _FAILED
            and (before is None or before.status.phase != _FAILED)
        ):
            found.add(pod.metadata.uid)
    return frozenset(found)
