"""A model of the Score plugins: the score of one node, in plain integers, as upstream calculates it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nominee.machinery.api.pb import core
from nominee.machinery.features.gates import Version
from nominee.machinery.scheduling.node_affinity import PreferredTerms
from nominee.machinery.scheduling.taints import is_tolerated
from nominee.machinery.wire import codec
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.resource_columns import CPU, FIRST_SCALAR, MEMORY
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.node_resources.arguments import BalancedArgs, FitArgs
from nominee.scheduler.plugins.node_resources.scoring import LeastAllocated, MostAllocated

MEGABYTE = 1024 * 1024


def _mean(scores: Sequence[tuple[int, int]]) -> int:
    """The mean of (score, weight), 0 without any."""
    weights = sum(weight for _, weight in scores)
    return sum(score * weight for score, weight in scores) // weights if weights else 0


def _on_line(shape: Sequence[Mapping[str, int]], used: int) -> int:
    points = [(each["utilization"], each["score"] * 10) for each in shape]
    if used <= points[0][0]:
        return points[0][1]
    for (left, low), (right, high) in itertools.pairwise(points):
        if used <= right:
            return low + int((high - low) * (used - left) / (right - left))
    return points[-1][1]


def _fit(args: Mapping[str, Any], pod: PodInfo, node: NodeInfo) -> int:
    strategy: Any = FitArgs.read(args).strategy
    columns = FitArgs.read(args).columns
    wanted = dict(pod.fit_requests)
    wanted[CPU], wanted[MEMORY] = pod.nonzero
    scores = []
    for column, weight in zip(columns, strategy.weights, strict=True):
        own = {CPU: node.nonzero_cpu, MEMORY: node.nonzero_memory}
        used = own.get(column, node.requested_of(column)) + wanted.get(column, 0)
        have = node.allocatable_of(column)
        if not have or (column >= FIRST_SCALAR and not wanted.get(column)):
            continue
        if isinstance(strategy, LeastAllocated):
            scores.append((max(have - used, 0) * 100 // have, weight))
        elif isinstance(strategy, MostAllocated):
            scores.append((min(used, have) * 100 // have, weight))
        else:
            shape = args["scoringStrategy"]["requestedToCapacityRatio"]["shape"]
            score = _on_line(shape, min(used * 100 // have, 100))
            scores += [(score, weight)] if score else []
    if isinstance(strategy, LeastAllocated | MostAllocated):
        return _mean(scores)
    total, weights = sum(s * w for s, w in scores), sum(w for _, w in scores)
    return math.floor(total / weights + 0.5) if weights else 0


def _balance(amounts: Sequence[tuple[int, int]]) -> int:
    """100 less the standard deviation of the fractions in use; of (requested, allocatable)."""
    fractions = [min(requested / have, 1.0) for requested, have in amounts if have]
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        mean = sum(fractions) / len(fractions)
        deviation = math.sqrt(sum((each - mean) * (each - mean) for each in fractions) / len(fractions))
    return int((1 - deviation) * 100)


def _balanced(args: Mapping[str, Any], pod: PodInfo, node: NodeInfo, version: Version) -> int:
    wanted = dict(pod.requests)
    columns = [c for c in BalancedArgs.read(args).columns if c < FIRST_SCALAR or wanted.get(c)]
    before = [(node.requested_of(column), node.allocatable_of(column)) for column in columns]
    after = [(used + wanted.get(c, 0), have) for c, (used, have) in zip(columns, before, strict=True)]
    if version < Version(1, 36):
        return _balance(after)
    return 50 + (50 + _balance(after) - _balance(before)) // 2


def _affinity(args: Mapping[str, Any], pod: PodInfo, node: NodeInfo) -> int:
    added = codec.from_json(core.NodeAffinity, args.get("addedAffinity", {}))
    terms = [
        *PreferredTerms.read(added.preferredDuringSchedulingIgnoredDuringExecution).terms,
        *PreferredTerms.of(pod.pod).terms,
    ]
    return sum(weight for weight, term in terms if term.matches(node.labels, node.name))


def _taints(pod: PodInfo, node: NodeInfo) -> int:
    tolerations = [each for each in pod.pod.spec.tolerations if each.effect in ("", "PreferNoSchedule")]
    soft = [each for each in node.taints if each[2] == "PreferNoSchedule"]
    return sum(
        not is_tolerated(tolerations, core.Taint(key=key, value=value, effect=effect), comparison=False)
        for key, value, effect in soft
    )


def _images(pod: PodInfo, node: NodeInfo, snapshot: Snapshot) -> int:
    if not pod.images:
        return 0
    present = [node.images[name] for name in pod.images if name in node.images]
    total = sum(int(image.size * (len(image.nodes) / len(snapshot))) for image in present)
    low, high = 23 * MEGABYTE, 1000 * MEGABYTE * len(pod.images)
    return 100 * (min(max(total, low), high) - low) // (high - low)


def model(args: Mapping[str, Any], snapshot: Snapshot, version: Version) -> Mapping[str, Callable[..., int]]:
    """The score of a pod on a node, by plugin; others have models of their own."""

    def of(plugin: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = args.get(plugin, {})
        return found

    return {
        "NodeResourcesFit": lambda pod, node: _fit(of("NodeResourcesFit"), pod, node),
        "NodeResourcesBalancedAllocation": lambda pod, node: _balanced(
            of("NodeResourcesBalancedAllocation"), pod, node, version
        ),
        "NodeAffinity": lambda pod, node: _affinity(of("NodeAffinity"), pod, node),
        "TaintToleration": _taints,
        "ImageLocality": lambda pod, node: _images(pod, node, snapshot),
    }
