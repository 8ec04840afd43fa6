"""Nodes where earlier alternatives of a request can be had are better (KEP-4816, prioritized list)."""

from __future__ import annotations

from scheduler.plugins.dynamic_resources.state import ClaimsState, OnNode

ALTERNATIVES_MAX = 8


def score_of(known: ClaimsState, on_node: OnNode | None) -> int:
    """The sum over all requests with alternatives: 8 for the first, 7 for the second, and so on."""
    wanted = known.to_allocate()
    if on_node is None or not any(
        request.firstAvailable for index in wanted for request in known.claims[index].spec.devices.requests
    ):
        return 0
    total = 0
    for index, allocation in zip(wanted, on_node.allocations(), strict=False):
        chosen = {result.request for result in allocation.devices.results}
        for request in known.claims[index].spec.devices.requests:
            for position, alternative in enumerate(request.firstAvailable):
                if f"{request.name}/{alternative.name}" in chosen:
                    total += ALTERNATIVES_MAX - position
    return total
