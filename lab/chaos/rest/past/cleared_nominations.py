"""The pods that wait and whose nomination was taken back, also those that got another one since. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

from nominee.lab.chaos.rest.past.pod_writes import pod_writes
from nominee.lab.history.revision import Revision


def cleared_nominations(history: Iterable[Revision]) -> frozenset[str]:
    """Return the uids of the pods that lost their nomination in a write which gave them no node."""
    return frozenset(
        pod.metadata.uid
        for _, before, pod in pod_writes(history)
        if before is not None
        and before.status.nominatedNodeName
        and not (pod.status.nominatedNodeName or pod.spec.nodeName)
    )
