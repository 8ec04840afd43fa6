"""Prefer nodes where earlier alternatives of a request are available (KEP-4816, prioritized list)."""

from __future__ import annotations

from nominee.scheduler.plugins.dynamic_resources.pod_claims import is_allocated
from nominee.scheduler.plugins.dynamic_resources.state import ClaimsState, OnNode

ALTERNATIVES_MAX = 8


def score_of(known: ClaimsState, on_node: OnNode | None) -> int:
    """Return the sum over all requests with alternatives: 8 for the first, 7 for the second, and so on.

    A claim allocated before the attempt adds the same to every node where others are to be had: normalizing
    makes the nodes differ less by it (dynamicresources, 1.36.2).
    """
    if on_node is None or not any(r.firstAvailable for c in known.claims for r in c.spec.devices.requests):
        return 0
    news = iter(on_node.allocations())
    total = 0
    for claim in known.claims:
        allocation = claim.status.allocation if is_allocated(claim) else next(news, None)
        if allocation is None:
            break  # a device plugin has the extended resources, whose claim comes last
        chosen = {result.request for result in allocation.devices.results}
        for request in claim.spec.devices.requests:
            for position, alternative in enumerate(request.firstAvailable):
                if f"{request.name}/{alternative.name}" in chosen:
                    total += ALTERNATIVES_MAX - position
    return total
