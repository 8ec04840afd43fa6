"""Which of several ways to grow is taken. Source: cluster-autoscaler 1.36, expanders.

Upstream draws lots between equals; here the first by the provider's order is taken, unless `random` is asked
for.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autoscaler.planning.observation import NodeGroup
from machinery.api.pb import core
from machinery.resources.quantity import milli, value
from scheduler.framework.resource_columns import CPU, MEMORY
from scheduler.framework.types import NodeInfo, PodInfo


@dataclass(frozen=True, slots=True)
class ScaleUpOption:
    """So many nodes of this group for these pods."""

    group: NodeGroup
    nodes: int
    pods: tuple[core.Pod, ...]
    template: NodeInfo


def _wasted(option: ScaleUpOption) -> float:
    """The shares of cpu and memory, of capacity, that the pods leave unused, together."""
    used = [0, 0]
    for pod in option.pods:
        amounts = dict(PodInfo(pod).fit_requests)
        for index, column in enumerate((CPU, MEMORY)):
            used[index] += amounts.get(column, 0)
    wasted = 0.0
    assert option.template.node is not None
    capacity = option.template.node.status.capacity
    for name, amount in (("cpu", used[0]), ("memory", used[1])):
        if name in capacity:
            whole = (milli if name == "cpu" else value)(capacity[name]) * option.nodes
            wasted += (whole - amount) / whole if whole else 0.0
    return wasted


_BEST: dict[str, Callable[[ScaleUpOption], float]] = {
    "least-waste": _wasted,
    "most-pods": lambda option: -len(option.pods),
    "least-nodes": lambda option: option.nodes,
}
EXPANDERS = ("random", *_BEST)


def check(expander: str) -> None:
    """ValueError for an expander that is not there."""
    for name in expander.split(","):
        if name not in EXPANDERS:
            raise ValueError(f"expander {name!r} not supported; there are {', '.join(EXPANDERS)}")


def best(options: Sequence[ScaleUpOption], expander: str, rng: random.Random) -> ScaleUpOption:
    """Filters by each expander in turn, then the first of what is left."""
    left = list(options)
    for name in expander.split(","):
        if name == "random":
            return rng.choice(left)
        score = _BEST[name]
        least = min(map(score, left))
        left = [option for option in left if score(option) == least]
    return left[0]
