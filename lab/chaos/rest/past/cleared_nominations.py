"""The pods that wait and whose nomination was taken back, also those that got another one since. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

from nominee.lab.history.invariants.checking.pods import same_pod_before
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import POD


def cleared_nominations(history: Iterable[Revision]) -> frozenset[str]:
    """Return the uids of the pods that lost their nomination in a write which gave them no node."""
    found: set[str] = set()
    for revision in history:
        if revision.kind is not POD or revision.is_state or not revision.is_readable:
            continue
        before, pod = same_pod_before(revision), revision.after(POD)
        if before is None or pod is None or pod.spec.nodeName:
            continue
        if before.status.nominatedNodeName and not pod.status.nominatedNodeName:
            found.add(pod.metadata.uid)
    return frozenset(found)
