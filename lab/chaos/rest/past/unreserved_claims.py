"""The resource claims that a scheduler left allocated as it took a reservation back. No I/O.

A pod that goes while it is being bound has its claim reserved and allocated. Unreserve takes the reservation
back by a patch of this list, and leaves the allocation; the resource claim controller frees a claim only in
the write that removes the last reservation itself. So the claim stays as it is until another pod uses it.
Source: kube-scheduler 1.36, DynamicResources, Unreserve; kube-controller-manager 1.36, syncClaim.
"""

from __future__ import annotations

from collections.abc import Iterable

from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import POD, RESOURCE_CLAIM


def unreserved_claims(history: Iterable[Revision]) -> frozenset[str]:
    """Return the uids of claims whose allocation outlived reservations for pods that were never bound.

    The reservation of a bound pod belongs to the controller, which has to free the claim.
    """
    bound: set[str] = set()
    left: dict[str, set[str]] = {}
    for revision in history:
        if revision.kind not in (POD, RESOURCE_CLAIM) or not revision.is_readable:
            continue
        if (pod := revision.after(POD)) is not None and pod.spec.nodeName:
            bound.add(pod.metadata.uid)
        before, claim = revision.before(RESOURCE_CLAIM), revision.after(RESOURCE_CLAIM)
        if before is None or claim is None or revision.is_state:
            continue
        if claim.status.reservedFor or not claim.status.HasField("allocation"):
            left.pop(claim.metadata.uid, None)
        elif before.status.reservedFor:
            left[claim.metadata.uid] = {each.uid for each in before.status.reservedFor}
    return frozenset(uid for uid, consumers in left.items() if consumers.isdisjoint(bound))
