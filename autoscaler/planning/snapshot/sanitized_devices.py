"""Devices and claims of a node that is made from another: its own pools, its own claims. Pure.

Source: cluster-autoscaler 1.36, dynamicresources utils (sanitizing of node infos).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nominee.autoscaler.planning.snapshot.dynamic_resources import Claim, Slice
from nominee.machinery.api.objects import copy_of, is_controlled_by
from nominee.machinery.api.pb import core


def sanitized_slices(slices: Iterable[Slice], node_name: str, suffix: str) -> tuple[Slice, ...]:
    """Return copies of a node's slices for the node `node_name`, in pools of its own.

    `suffix` is appended to names, UIDs and pools.
    """
    copies = []
    for each in slices:
        copy = copy_of(each)
        copy.metadata.name = f"{each.metadata.name}-{suffix}"
        copy.metadata.uid = f"{each.metadata.uid}-{suffix}"
        copy.spec.pool.name = f"{each.spec.pool.name}-{suffix}"
        copy.spec.nodeName = node_name
        copies.append(copy)
    return tuple(copies)


def sanitized_claims(
    claims: Iterable[Claim], owner: core.Pod, copy: core.Pod, pools: Iterable[str], suffix: str
) -> list[Claim]:
    """Return copies of the claims that `owner` owns, for its copy on a copy of its node.

    `pools` are those of the owner's node. A claim with devices of another pool cannot be allocated twice and
    is left out.
    """
    of_node, copies = frozenset(pools), []
    for claim in claims:
        results = claim.status.allocation.devices.results
        if not is_controlled_by(claim, owner) or any(result.pool not in of_node for result in results):
            continue
        copies.append(_claim_copy(claim, owner, copy, suffix))
    return copies


def _claim_copy(claim: Claim, owner: core.Pod, pod: core.Pod, suffix: str) -> Claim:
    new = copy_of(claim)
    new.metadata.name = f"{claim.metadata.name}-{suffix}"
    new.metadata.uid = f"{claim.metadata.uid}-{suffix}"
    for reference in new.metadata.ownerReferences:
        if reference.uid == owner.metadata.uid:
            reference.name, reference.uid = pod.metadata.name, pod.metadata.uid
    for result in new.status.allocation.devices.results:
        result.pool = f"{result.pool}-{suffix}"
    if new.status.allocation.HasField("nodeSelector"):
        for term in new.status.allocation.nodeSelector.nodeSelectorTerms:
            for row in term.matchFields:
                row.values[:] = [pod.spec.nodeName]
    del new.status.reservedFor[:]
    return new


def has_devices_of(slices: Iterable[Slice], template: Sequence[Slice]) -> bool:
    """Report whether a node has published pools as large as those of its template, for each driver."""
    missing = _pool_sizes(template)
    for size in _pool_sizes(slices):
        if size in missing:
            missing.remove(size)
    return not missing


def _pool_sizes(slices: Iterable[Slice]) -> list[tuple[str, int]]:
    """Return (driver, number of devices) of each pool."""
    pools: dict[tuple[str, str], int] = {}
    for each in slices:
        key = each.spec.driver, each.spec.pool.name
        pools[key] = pools.get(key, 0) + len(each.spec.devices)
    return sorted((driver, count) for (driver, _), count in pools.items())
