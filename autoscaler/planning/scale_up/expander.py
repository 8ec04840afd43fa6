"""Expanders, which choose one of several scale-up options. Source: cluster-autoscaler 1.36, expander.

Upstream chooses at random between equal options; here it is the first one in the provider's order, unless
`random` is configured.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nominee.autoscaler.planning.objects.observation import NodeGroup
from nominee.machinery.api.pb import core
from nominee.machinery.resources.quantity import milli, value
from nominee.scheduler.framework.resource_columns import CPU, MEMORY
from nominee.scheduler.framework.types import NodeInfo, PodInfo


@dataclass(frozen=True, slots=True)
class ScaleUpOption:
    """A number of new nodes of a group, and the pods that they would run."""

    group: NodeGroup
    node_count: int
    pods: tuple[core.Pod, ...]
    template: NodeInfo


def _wasted(option: ScaleUpOption) -> float:
    """Return the unused share of cpu plus that of memory, of the new nodes' capacity."""
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
            total = (milli if name == "cpu" else value)(capacity[name]) * option.node_count
            wasted += (total - amount) / total if total else 0.0
    return wasted


_SCORES: dict[str, Callable[[ScaleUpOption], float]] = {
    "least-waste": _wasted,
    "most-pods": lambda option: -len(option.pods),
    "least-nodes": lambda option: option.node_count,
}
"""Score of an option by expander; the lowest is the best."""
EXPANDERS = ("random", *_SCORES)


def check(expander: str) -> None:
    """Check the value of `--expander`.

    Raises:
        ValueError: it names an expander that does not exist.
    """
    for name in expander.split(","):
        if name not in EXPANDERS:
            raise ValueError(f"expander {name!r} not supported; supported are {', '.join(EXPANDERS)}")


def best_option(options: Sequence[ScaleUpOption], expander: str, rng: random.Random) -> ScaleUpOption:
    """Filter the options by each expander in turn, and return the first that is left."""
    left = list(options)
    for name in expander.split(","):
        if name == "random":
            return rng.choice(left)
        score = _SCORES[name]
        lowest = min(map(score, left))
        left = [option for option in left if score(option) == lowest]
    return left[0]
