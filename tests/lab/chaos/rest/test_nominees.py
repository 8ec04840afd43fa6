"""What a restart may change about pods with nominations that no attempt has looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from nominee.lab.chaos.rest.losses import losses_of
from nominee.lab.chaos.rest.nodes import AUTOSCALER, LOOP
from nominee.lab.chaos.rest.restart import changes, facts, with_cleared
from nominee.lab.chaos.rest.scheduling import QUEUE, SCHEDULER
from nominee.machinery.wire.values.scalars import Json
from tests.lab.chaos.rest.clusters import Change, changed, correct, pod, state


@pytest.mark.parametrize(("gated", "node", "count"), [("g", "n1", 0), ("g", "n2", 1), ("other", "n1", 1)])
def test_a_restart_frees_the_room_that_was_kept_for_a_gated_pod(gated: str, node: str, count: int) -> None:
    def waiting(at: str) -> Change:
        return lambda manifests: manifests.update(p=pod("p", node=at, namespace="default", labels={}))

    document = {
        "gated": [{"pod": f"default/{gated}", "plugins": ["DefaultPreemption"]}],
        "nominated": {"n1": ["default/g"]},
        "unschedulable": [],
    }
    before = state(changed(waiting("")), debug={(SCHEDULER, QUEUE): document})
    after = facts(state(changed(waiting(node))))
    assert len(list(changes(facts(before), after, losses_of(before)))) == count


@pytest.mark.parametrize(
    ("taker", "node", "nomination", "victim_node", "count"),
    [
        ("p", "", "n1", "n1", 0),
        ("p", "n1", "", "n1", 0),
        ("p", "", "n2", "n2", 2),
        ("p", "", "n1", "n2", 2),
        ("p", "", "", "n1", 1),
        ("g", "n1", "n1", "n1", 1),
    ],
    ids=["nominated", "bound", "another node", "a victim elsewhere", "no other pod", "the gated pod"],
)
def test_a_pod_may_preempt_where_room_was_kept_for_a_gated_pod(
    taker: str, node: str, nomination: str, victim_node: str, count: int
) -> None:
    def cluster(names: Sequence[str], places: Mapping[str, tuple[str, str]]) -> Change:
        found = {name: pod(name, node=victim_node, namespace="default", labels={}) for name in names}
        for name, (at, nominated) in places.items():
            found[name] = pod(name, node=at, namespace="default", labels={})
            found[name]["status"]["nominatedNodeName"] = nominated
        return lambda manifests: manifests.update(found)

    document = {"gated": [{"pod": "default/g"}], "nominated": {"n1": ["default/g"]}, "unschedulable": []}
    places = {"g": ("", "n1"), "p": ("", "")}
    before = state(changed(cluster(["victim"], places)), debug={(SCHEDULER, QUEUE): document})
    after = facts(state(changed(cluster([], places | {taker: (node, nomination)}))))
    assert len(list(changes(facts(before), after, losses_of(before)))) == count


@pytest.mark.parametrize(
    ("gated", "node", "nomination", "count"),
    [("g", "", "", 0), ("g", "", "n2", 1), ("g", "n2", "", 1), ("other", "", "", 1)],
    ids=["cleared", "another node", "bound", "not gated"],
)
def test_a_restart_takes_a_nomination_that_helps_no_more_from_a_gated_pod(
    gated: str, node: str, nomination: str, count: int
) -> None:
    def waiting(at: str, nominated: str) -> Change:
        found = pod("g", node=at, namespace="default", labels={})
        found["status"]["nominatedNodeName"] = nominated
        return lambda manifests: manifests.update(g=found)

    document = {
        "gated": [{"pod": f"default/{gated}"}],
        "nominated": {"n1": ["default/g"]},
        "unschedulable": [],
    }
    before = state(changed(waiting("", "n1")), debug={(SCHEDULER, QUEUE): document})
    after = facts(state(changed(waiting(node, nomination))))
    assert len(list(changes(facts(before), after, losses_of(before)))) == count


@pytest.mark.parametrize(("uids", "count"), [({"Pod-g"}, 0), ({"Pod-p"}, 1)], ids=["inherited", "its own"])
def test_a_restart_takes_a_nomination_that_was_meant_for_a_former_pod(uids: set[str], count: int) -> None:
    def waiting(nominated: str) -> Change:
        found = pod("g", node="", namespace="default", labels={})
        found["status"]["nominatedNodeName"] = nominated
        return lambda manifests: manifests.update(g=found)

    entry = {"pod": "default/g", "plugins": ["NodeResourcesFit"]}
    document = {"gated": [], "nominated": {"n1": ["default/g"]}, "unschedulable": [entry]}
    before = state(changed(waiting("n1")), debug={(SCHEDULER, QUEUE): document})
    before = replace(before, inherited_nominations=frozenset(uids))
    after = facts(state(changed(waiting(""))))
    assert len(list(changes(facts(before), after, losses_of(before)))) == count


@pytest.mark.parametrize(
    ("nominated", "cleared", "count"),
    [
        ({}, ["Pod-g"], 1),
        ({"n1": ["default/g"]}, ["Pod-g"], 0),
        ({"n1": ["default/g"]}, [], 1),
        ({"n1": ["default/g"]}, ["Pod-other"], 1),
    ],
    ids=["not nominated", "cleared", "not cleared", "another nomination"],
)
def test_an_autoscaler_sees_a_gated_pod_that_has_lost_its_nomination(
    nominated: Json, cleared: Sequence[str], count: int
) -> None:
    manifests = correct() | {"g": pod("g", node="", namespace="default", labels={})}
    former = {name: each for name, each in manifests.items() if name != "node"}
    queue = {"gated": [{"pod": "default/g"}], "nominated": nominated, "unschedulable": []}
    loop = {"backedOffGroups": [], "inCooldown": False, "pendingHints": []}
    for debug, found in (
        ({(SCHEDULER, QUEUE): queue}, 1),
        ({(SCHEDULER, QUEUE): queue, (AUTOSCALER, LOOP): loop}, count),
    ):
        before = state(former, debug=debug)
        lost = with_cleared(losses_of(before), facts(before), cleared)
        assert len(list(changes(facts(before), facts(state(manifests)), lost))) == found
