"""Parse the arguments of the two resource plugins (kubescheduler.config.k8s.io/v1).

Source: kube-scheduler 1.36, NodeResourcesFitArgs and NodeResourcesBalancedAllocationArgs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nominee.scheduler.framework.resource_columns import CPU, MEMORY, column_of
from nominee.scheduler.framework.runtime.profile import ArgumentError
from nominee.scheduler.plugins.node_resources.scoring import (
    SHAPE_SCORE_MAX,
    UTILIZATION_MAX,
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio,
    Strategy,
)

WEIGHT_MAX = 100
_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


@dataclass(frozen=True, slots=True)
class FitArgs:
    """The arguments of NodeResourcesFit: ignored resources, and how it scores."""

    ignored: frozenset[str]
    ignored_groups: frozenset[str]
    columns: tuple[int, ...]
    strategy: Strategy

    @property
    def ignores_anything(self) -> bool:
        return bool(self.ignored or self.ignored_groups)

    def ignores(self, resource: str) -> bool:
        """Return whether an extended resource is ignored: by name, or by the part before the slash."""
        return resource in self.ignored or resource.partition("/")[0] in self.ignored_groups

    @classmethod
    def read(cls, args: Mapping[str, Any]) -> FitArgs:
        """Return the parsed arguments.

        Raises:
            ArgumentError: an argument is invalid.
        """
        groups = args.get("ignoredResourceGroups") or ()
        for index, group in enumerate(groups):
            if "/" in group:
                raise ArgumentError(
                    f"ignoredResourceGroups[{index}]",
                    f"Invalid value: \"{group}\": resource group name can't contain '/'",
                )
        scoring = args.get("scoringStrategy") or {}
        columns, weights = _resources(scoring.get("resources"), "scoringStrategy.resources", WEIGHT_MAX)
        return cls(
            frozenset(args.get("ignoredResources") or ()),
            frozenset(groups),
            columns,
            _strategy(scoring, weights),
        )


@dataclass(frozen=True, slots=True)
class BalancedArgs:
    """The arguments of NodeResourcesBalancedAllocation: the resources to be in balance."""

    columns: tuple[int, ...]

    @classmethod
    def read(cls, args: Mapping[str, Any]) -> BalancedArgs:
        """Return the parsed arguments.

        Raises:
            ArgumentError: an argument is invalid; the only weight allowed is 1.
        """
        columns, _ = _resources(args.get("resources"), "resources", 1)
        return cls(columns)


def _resources(
    resources: Sequence[Mapping[str, Any]] | None, path: str, weight_max: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if not resources:
        return (CPU, MEMORY), (1, 1)
    columns, weights = [], []
    for index, resource in enumerate(resources):
        name, weight = resource.get("name", ""), resource.get("weight") or 1
        column = column_of(name)
        if column is None:
            raise ArgumentError(f"{path}[{index}].name", f'Invalid value: "{name}": not a countable resource')
        if column in columns:
            raise ArgumentError(f"{path}[{index}]", f'Duplicate value: "{name}"')
        if not isinstance(weight, int) or not 1 <= weight <= weight_max:
            text = f"resource weight of {name} not in valid range [1, {weight_max}]"
            raise ArgumentError(f"{path}[{index}].weight", f"Invalid value: {weight}: {text}")
        columns.append(column)
        weights.append(weight)
    return tuple(columns), tuple(weights)


def _strategy(scoring: Mapping[str, Any], weights: tuple[int, ...]) -> Strategy:
    kind = scoring.get("type") or "LeastAllocated"
    if kind == "LeastAllocated":
        return LeastAllocated(weights)
    if kind == "MostAllocated":
        return MostAllocated(weights)
    if kind == "RequestedToCapacityRatio":
        shape = (scoring.get("requestedToCapacityRatio") or {}).get("shape") or ()
        return RequestedToCapacityRatio(weights, _shape(shape))
    supported = ", ".join(f'"{name}"' for name in _STRATEGIES)
    raise ArgumentError("scoringStrategy.type", f'Unsupported value: "{kind}": supported values: {supported}')


def _shape(shape: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    path = "scoringStrategy.requestedToCapacityRatio.shape"
    if not shape:
        raise ArgumentError(path, "Required value: at least one point must be specified")
    points: list[tuple[int, int]] = []
    for index, point in enumerate(shape):
        utilization, score = point.get("utilization", 0), point.get("score", 0)
        if not 0 <= utilization <= UTILIZATION_MAX:
            text = f"Invalid value: {utilization}: not in valid range [0-{UTILIZATION_MAX}]"
            raise ArgumentError(f"{path}[{index}].utilization", text)
        if not 0 <= score <= SHAPE_SCORE_MAX:
            text = f"Invalid value: {score}: not in valid range [0-{SHAPE_SCORE_MAX}]"
            raise ArgumentError(f"{path}[{index}].score", text)
        if points and utilization <= points[-1][0]:
            text = f"Invalid value: {utilization}: utilization values must be sorted in increasing order"
            raise ArgumentError(f"{path}[{index}].utilization", text)
        points.append((utilization, score))
    return points
