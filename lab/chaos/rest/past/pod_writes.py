"""The writes of a history that leave a pod. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nominee.lab.history.invariants.checking.pods import same_pod_before
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import POD
from nominee.machinery.api.pb import core


def pod_writes(history: Iterable[Revision]) -> Iterator[tuple[Revision, core.Pod | None, core.Pod]]:
    """Yield each write with the pod before it, None for one that was created, and the pod after it."""
    for revision in history:
        if revision.kind is POD and not revision.is_state and revision.is_readable:
            pod = revision.after(POD)
            if pod is not None:
                yield revision, same_pod_before(revision), pod
