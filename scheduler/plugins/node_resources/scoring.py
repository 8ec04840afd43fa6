"""Score how full nodes would be with the pod: the strategies of NodeResourcesFit, and balance.

Source: kube-scheduler 1.36, plugins noderesources.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nominee.scheduler.framework.interface import MAX_NODE_SCORE

Int64s = NDArray[np.int64]
UTILIZATION_MAX = 100
SHAPE_SCORE_MAX = 10


class Strategy(Protocol):
    """Requested (the pod included) and allocatable amounts of each resource to 0..100.

    A resource that a node has none of is left out for that node.
    """

    def scores(self, requested: Sequence[Int64s], allocatable: Sequence[Int64s]) -> Int64s: ...


def _weighted_mean(scores: Sequence[Int64s], weights: Sequence[int], allocatable: Sequence[Int64s]) -> Int64s:
    """Return the integer mean over the resources that a node has; scores must be 0 where it has not."""
    total = scores[0] if weights[0] == 1 else scores[0] * weights[0]
    for score, weight in zip(scores[1:], weights[1:], strict=True):
        total = total + (score if weight == 1 else score * weight)
    if all(amounts.all() for amounts in allocatable):
        return total // sum(weights)
    weight_sum = np.zeros_like(total)
    for amounts, weight in zip(allocatable, weights, strict=True):
        weight_sum += (amounts != 0) * weight
    return total // np.maximum(weight_sum, 1)


@dataclass(frozen=True, slots=True)
class LeastAllocated:
    """The emptier the better."""

    weights: tuple[int, ...]

    def scores(self, requested: Sequence[Int64s], allocatable: Sequence[Int64s]) -> Int64s:
        scores = [
            np.maximum(have - wanted, 0) * MAX_NODE_SCORE // np.maximum(have, 1)
            for wanted, have in zip(requested, allocatable, strict=True)
        ]
        return _weighted_mean(scores, self.weights, allocatable)


@dataclass(frozen=True, slots=True)
class MostAllocated:
    """The fuller the better."""

    weights: tuple[int, ...]

    def scores(self, requested: Sequence[Int64s], allocatable: Sequence[Int64s]) -> Int64s:
        scores = [
            np.minimum(wanted, have) * MAX_NODE_SCORE // np.maximum(have, 1)
            for wanted, have in zip(requested, allocatable, strict=True)
        ]
        return _weighted_mean(scores, self.weights, allocatable)


class RequestedToCapacityRatio:
    """A score by utilization, on a line bent at given points; resources that score 0 do not count."""

    def __init__(self, weights: tuple[int, ...], shape: Sequence[tuple[int, int]]) -> None:
        """Take `shape`: (utilization 0..100, score 0..10) with increasing utilization."""
        self.weights = weights
        points = [(u, score * (MAX_NODE_SCORE // SHAPE_SCORE_MAX)) for u, score in shape]
        self._table = np.array([_on_line(points, u) for u in range(UTILIZATION_MAX + 1)], dtype=np.int64)

    def scores(self, requested: Sequence[Int64s], allocatable: Sequence[Int64s]) -> Int64s:
        """Return the rounded mean of the values on the line, one for each resource."""
        score = np.zeros_like(requested[0])
        weights = np.zeros_like(requested[0])
        for wanted, have, weight in zip(requested, allocatable, self.weights, strict=True):
            used = np.minimum(wanted * UTILIZATION_MAX // np.maximum(have, 1), UTILIZATION_MAX)
            own = np.where(have != 0, self._table[used], 0)
            score += weight * own
            weights += weight * (own > 0)
        weights = np.maximum(weights, 1)
        return (2 * score + weights) // (2 * weights)


def _on_line(points: Sequence[tuple[int, int]], at: int) -> int:
    """Return the value at a utilization, with integer division towards zero as Go does."""
    for index, (utilization, score) in enumerate(points):
        if at <= utilization:
            if index == 0:
                return score
            before, from_score = points[index - 1]
            rise = (score - from_score) * (at - before)
            return from_score + int(math.copysign(abs(rise) // (utilization - before), rise))
    return points[-1][1]


# Balance

_Floats = NDArray[np.float64]


def balance(requested: Sequence[Int64s], allocatable: Sequence[Int64s]) -> Int64s:
    """Return 100 less the standard deviation of the fractions in use: 100 when all are equal.

    A resource that a node has none of is left out for that node.
    """
    if not requested:
        return np.zeros(0, dtype=np.int64)
    has = [have != 0 for have in allocatable]
    if all(there.all() for there in has):
        return _balance(requested, allocatable)
    scores = np.full(len(requested[0]), MAX_NODE_SCORE, dtype=np.int64)
    kinds, kind_of = np.unique(np.stack(has), axis=1, return_inverse=True)
    for number, kind in enumerate(kinds.T):
        present = np.flatnonzero(kind).tolist()
        rows = kind_of.ravel() == number
        if present:
            scores[rows] = _balance(
                [requested[i][rows] for i in present], [allocatable[i][rows] for i in present]
            )
    return scores


def _balance(requested: Sequence[Int64s], allocatable: Sequence[Int64s]) -> Int64s:
    """Return the balance of nodes that have all the resources."""
    fractions: list[_Floats] = [
        np.minimum(wanted / have, 1.0) for wanted, have in zip(requested, allocatable, strict=True)
    ]
    return ((1 - _deviation(fractions)) * MAX_NODE_SCORE).astype(np.int64)


def _deviation(fractions: list[_Floats]) -> _Floats:
    if len(fractions) == 1:
        return np.zeros_like(fractions[0])
    if len(fractions) == 2:
        deviation: _Floats = np.abs((fractions[0] - fractions[1]) / 2)
        return deviation
    total = fractions[0].copy()
    for fraction in fractions[1:]:
        total += fraction
    mean = total / len(fractions)
    squares = np.zeros_like(total)
    for fraction in fractions:
        squares += (fraction - mean) * (fraction - mean)
    root: _Floats = np.sqrt(squares / len(fractions))
    return root
