"""Check the cache against itself: the sums of each node must be those of its pods. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.types import NodeInfo


def cache_problems(cache: Cache) -> Iterator[str]:
    """Yield a sentence for each node whose sums, counted again from its pods, are others.

    Used host ports are left out: a port that two pods hold goes with the first of them, as upstream.
    """
    for info in cache.nodes():
        again = NodeInfo(info.name)
        for pod in info.pods.values():
            again.add_pod(pod)
        columns = range(max(len(info.requested), len(again.requested)))
        sums = [(info.requested_of(column), again.requested_of(column)) for column in columns]
        sums += [(info.nonzero_cpu, again.nonzero_cpu), (info.nonzero_memory, again.nonzero_memory)]
        if any(kept != counted for kept, counted in sums):
            kept, counted = (", ".join(str(pair[side]) for pair in sums) for side in (0, 1))
            yield f"node {info.name} sums up to {kept}, and its pods to {counted}"
        astray = [pod for pod in info.pods if cache.node_of(pod) != info.name]
        if astray:
            yield f"node {info.name} has pods of other nodes: {', '.join(sorted(astray))}"
