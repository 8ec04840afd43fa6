"""How many replicas each replica set of a deployment may have. Pure.

Source: kube-controller-manager 1.36, pkg/controller/deployment/util (ResolveFenceposts, NewRSNewReplicas,
GetReplicaSetProportion).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from nominee.controllers.deployments.sets import age_order, max_replicas
from nominee.machinery.api.pb import apps, intstr


def is_rolling(deployment: apps.Deployment) -> bool:
    return deployment.spec.strategy.type == "RollingUpdate"


def amount(value: intstr.IntOrString, total: int, *, up: bool) -> int:
    """Return an absolute number, or a percentage of `total`, rounded up or down."""
    if value.type == 0:
        return value.intVal
    percent = int(value.strVal.removesuffix("%") or 0)
    return -(-percent * total // 100) if up else percent * total // 100


def fenceposts(deployment: apps.Deployment) -> tuple[int, int]:
    """Return (surge, unavailable) in pods: surge rounds up, unavailable down, and never are both 0."""
    rolling, replicas = deployment.spec.strategy.rollingUpdate, deployment.spec.replicas
    surge = amount(rolling.maxSurge, replicas, up=True)
    unavailable = amount(rolling.maxUnavailable, replicas, up=False)
    # Validation does not let both be 0, but a percentage may round down to it.
    return (surge, unavailable) if surge or unavailable else (surge, 1)


def surge_max(deployment: apps.Deployment) -> int:
    """Return how many pods there may be beyond spec.replicas during a rolling update."""
    return fenceposts(deployment)[0] if is_rolling(deployment) else 0


def unavailable_max(deployment: apps.Deployment) -> int:
    """Return how many pods may be missing during a rolling update, at most spec.replicas."""
    if not is_rolling(deployment) or deployment.spec.replicas == 0:
        return 0
    return min(fenceposts(deployment)[1], deployment.spec.replicas)


def total_replicas(sets: Iterable[apps.ReplicaSet]) -> int:
    return sum(each.spec.replicas for each in sets)


def new_set_size(deployment: apps.Deployment, sets: Iterable[apps.ReplicaSet], new: apps.ReplicaSet) -> int:
    """Return how far the new replica set may grow now; `sets` are all, the new one among them."""
    if not is_rolling(deployment):
        return deployment.spec.replicas
    room = deployment.spec.replicas + surge_max(deployment) - total_replicas(sets)
    if room <= 0:
        return new.spec.replicas
    return new.spec.replicas + min(room, deployment.spec.replicas - new.spec.replicas)


def _share(deployment: apps.Deployment, each: apps.ReplicaSet) -> int:
    """Return by how much a set would change if all changed in proportion to the deployment."""
    if deployment.spec.replicas == 0:
        return -each.spec.replicas
    before = max_replicas(each) or deployment.status.replicas
    if not before:
        return 0
    after = deployment.spec.replicas + surge_max(deployment)
    size = each.spec.replicas * after / before
    return (math.floor(size + 0.5) if size >= 0 else math.ceil(size - 0.5)) - each.spec.replicas


def proportional(deployment: apps.Deployment, sets: Sequence[apps.ReplicaSet]) -> dict[str, int]:
    """Return each active set's size by name when a deployment is scaled during a rollout, largest first.

    What rounding leaves over goes to the largest.
    """
    allowed = deployment.spec.replicas + surge_max(deployment) if deployment.spec.replicas else 0
    to_add = allowed - total_replicas(sets)
    ordered = by_size(sets, newest_first=to_add > 0)
    sizes, added = {}, 0
    for each in ordered:
        share = 0
        if each.spec.replicas and to_add != added:
            share = _share(deployment, each)
            left = to_add - added
            share = min(share, left) if to_add > 0 else max(share, left) if to_add < 0 else 0
        sizes[each.metadata.name] = each.spec.replicas + share
        added += share
    if ordered and to_add:
        first = ordered[0].metadata.name
        sizes[first] = max(sizes[first] + to_add - added, 0)
    return sizes


def by_size(sets: Iterable[apps.ReplicaSet], *, newest_first: bool) -> list[apps.ReplicaSet]:
    """Return the sets, largest first; of equals the newest or the oldest."""
    by_age = sorted(sets, key=age_order, reverse=newest_first)
    return sorted(by_age, key=lambda each: -each.spec.replicas)
