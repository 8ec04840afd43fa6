"""PodTopologySpread: default constraints and arguments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from nominee.machinery.api import kinds
from nominee.machinery.api.pb import apps, core, meta
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.runtime.profile import ArgumentError
from nominee.scheduler.plugins.pod_topology_spread import PodTopologySpread
from nominee.scheduler.plugins.pod_topology_spread.constraints import HOSTNAME, ZONE
from tests.scheduler.builders import Desk, desk
from tests.scheduler.golden import ListLister
from tests.scheduler.plugins.spread_model import (
    MISMATCH,
    UNLABELLED,
    constraint,
    node_of,
    pod_of,
)


def replica_set(name: str, labels: Mapping[str, str]) -> apps.ReplicaSet:
    return apps.ReplicaSet(
        metadata=meta.ObjectMeta(name=name, namespace="default"),
        spec=apps.ReplicaSetSpec(selector=meta.LabelSelector(matchLabels=labels)),
    )


def service(name: str, labels: Mapping[str, str], namespace: str = "default") -> core.Service:
    return core.Service(
        metadata=meta.ObjectMeta(name=name, namespace=namespace), spec=core.ServiceSpec(selector=labels)
    )


OWNED = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
BY_LIST = {"defaultingType": "List", "defaultConstraints": [{
    "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]}  # fmt: skip


def with_defaults(args: Mapping[str, Any], *objects: Any) -> tuple[Desk, PodTopologySpread]:
    """Three nodes, the third without a zone; two pods of app=a on the first, one on the second."""
    by_kind: dict[Any, list[Any]] = {}
    for obj in objects:
        by_kind.setdefault(kinds.of(obj), []).append(obj)
    on = desk(environment={"listers": {kind: ListLister(found) for kind, found in by_kind.items()}})
    for name, zone in (("n1", "a"), ("n2", "b"), ("n3", "")):
        on.add_nodes(node_of(name, {HOSTNAME: name, **({ZONE: zone} if zone else {})}))
    for name, where in (("p1", "n1"), ("p2", "n1"), ("p3", "n2")):
        on.cache.add_pod(pod_of(name, on=where, labels={"app": "a"}))
    on.cache.update_snapshot(on.framework.snapshot)
    return on, PodTopologySpread(args, on.framework)


@pytest.mark.parametrize(
    ("objects", "owner", "scored"),
    [
        ((), None, False),
        ((service("s", {"app": "a"}),), None, True),
        ((service("s", {"app": "b"}),), None, False),
        ((service("s", {"app": "a"}, "other"),), None, False),
        ((service("s", {}),), None, False),
        ((replica_set("web", {"app": "a"}),), OWNED, True),
        ((replica_set("web", {"app": "a"}),), {**OWNED, "controller": False}, False),
        ((replica_set("other", {"app": "a"}),), OWNED, False),
        ((replica_set("web", {"app": "a"}),), {**OWNED, "apiVersion": "apps/v2"}, False),
        ((), {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}, False),
    ],
)
def test_the_systems_defaults_need_a_service_or_a_controller(
    objects: tuple[Any, ...], owner: Mapping[str, Any] | None, scored: bool
) -> None:
    on, plugin = with_defaults({}, *objects)
    snapshot, state = on.framework.snapshot, CycleState()
    pod = pod_of("p", labels={"app": "a"}, owner=owner)
    _, status = plugin.pre_filter(state, pod, snapshot)
    assert status is not None
    assert status.is_skip
    rows = np.arange(3)
    status = plugin.pre_score(state, pod, snapshot, rows)
    assert (status is None) == scored
    if scored:
        raw = plugin.score_all(state, pod, snapshot, rows)
        # Hosts: log 5 a pod and 2; zones, no zone being one too: log 5 a pod and 4, nothing without a zone.
        assert raw.tolist() == [round(4 * math.log(5) + 6), round(2 * math.log(5) + 6), 2]
        assert plugin.normalize(state, pod, raw).tolist() == [16, 41, 100]


def test_own_constraints_replace_the_defaults() -> None:
    on, plugin = with_defaults(BY_LIST, service("s", {"app": "a"}))
    pod = pod_of("p", labels={"app": "a"}, topologySpreadConstraints=[constraint(ZONE, hard=False)])
    _, status = plugin.pre_filter(CycleState(), pod, on.framework.snapshot)
    assert status is not None
    assert status.is_skip


def test_defaults_by_list_may_be_hard() -> None:
    on, plugin = with_defaults(
        BY_LIST, service("s", {"app": "a"}), replica_set("web", {"app": "a", "rev": "1"})
    )
    state, snapshot = CycleState(), on.framework.snapshot
    loose = pod_of("p", labels={"app": "a"})
    assert plugin.pre_filter(state, loose, snapshot)[1] is None
    found = [plugin.filter(state, loose, node) for node in snapshot.nodes]
    assert [None if each is None else each.reasons[0] for each in found] == [MISMATCH, None, UNLABELLED]
    # The service's labels and the controller's: no pod has all of them yet.
    owned = pod_of("q", labels={"app": "a", "rev": "1"}, owner=OWNED)
    assert plugin.pre_filter(state, owned, snapshot)[1] is None
    assert [plugin.filter(state, owned, node) is None for node in snapshot.nodes] == [True, True, False]


def listed(**changes: Any) -> dict[str, Any]:
    one = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", **changes}
    return {"defaultingType": "List", "defaultConstraints": [one]}


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"defaultingType": "None"}, "defaultingType"),
        ({"defaultConstraints": listed()["defaultConstraints"]}, "defaultingType"),
        (listed(maxSkew=0), "defaultConstraints[0].maxSkew"),
        (listed(topologyKey=""), "defaultConstraints[0].topologyKey"),
        (listed(topologyKey="a b"), "defaultConstraints[0].topologyKey"),
        (listed(whenUnsatisfiable=""), "defaultConstraints[0].whenUnsatisfiable"),
        (listed(whenUnsatisfiable="Never"), "defaultConstraints[0].whenUnsatisfiable"),
        (listed(labelSelector={}), "defaultConstraints[0].labelSelector"),
        ({"defaultingType": "List", "defaultConstraints": listed()["defaultConstraints"] * 2},
         "defaultConstraints[1]"),
    ],
)  # fmt: skip
def test_arguments_that_are_rejected(args: dict[str, Any], path: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        PodTopologySpread(args, desk().framework)
    assert caught.value.path == path
