"""Extenders in a whole scheduler: what they are asked, and what comes of their answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from nominee.machinery.api import kinds
from nominee.scheduler.configuration.config import Extender, SchedulerConfig
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import PreFilterPlugin, PreFilterResult, Status
from nominee.scheduler.framework.types import PodInfo
from tests.scheduler.builders import node, pod
from tests.scheduler.extenders.conftest import Outside
from tests.scheduler.shell.conftest import running
from tests.support.fake_api import FakeApi
from tests.support.patience import PATIENCE_SECONDS

ASKS_ALL = {"filter_verb": "filter", "prioritize_verb": "prioritize", "weight": 1, "node_cache_capable": True}


def config(*extenders: Extender) -> SchedulerConfig:
    return SchedulerConfig(extenders=extenders)


def at(outside: Outside, **fields: Any) -> Extender:
    return Extender(url_prefix=outside.url, **fields)


def cluster(*names: str, cpu: str = "4", pods: tuple[str, ...] = ("p",)) -> FakeApi:
    api = FakeApi()
    for name in names:
        api.put(node(name, cpu=cpu))
    for name in pods:
        api.put(pod(name).pod)
    return api


class Narrowing(PreFilterPlugin):
    """A plugin from outside that lets pods to n1 alone."""

    name = "Narrowing"

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status | None]:
        return PreFilterResult(frozenset({"n1"})), None


def message(api: FakeApi, name: str = "p") -> str:
    conditions = api.pod(name).status.conditions
    return str(conditions[0].message) if conditions else ""


async def test_filter_narrows_and_prioritize_chooses(outside: Outside) -> None:
    outside.answers(
        filter={"body": {"NodeNames": ["n1", "n3"], "FailedNodes": {"n2": "no licence"}}},
        prioritize={"body": [{"Host": "n1", "Score": 0}, {"Host": "n3", "Score": 10}]},
    )
    api = cluster("n1", "n2", "n3")
    async with running(api, config=config(at(outside, **ASKS_ALL))):
        await api.until(lambda: bool(api.pod("p").spec.nodeName))
    assert api.pod("p").spec.nodeName == "n3"
    [asked] = outside.calls("filter")
    assert (sorted(asked["NodeNames"]), asked["Nodes"]) == (["n1", "n2", "n3"], None)
    assert asked["Pod"]["metadata"]["name"] == "p"
    [scored] = outside.calls("prioritize")
    assert scored["NodeNames"] == ["n1", "n3"]


async def test_whole_nodes_go_to_an_extender_without_a_cache(outside: Outside) -> None:
    outside.answers(filter={"body": {"nodes": {"items": [{"metadata": {"name": "n2"}}]}}})
    api = cluster("n1", "n2")
    async with running(api, config=config(at(outside, filter_verb="filter"))):
        await api.until(lambda: bool(api.pod("p").spec.nodeName))
    assert api.pod("p").spec.nodeName == "n2"
    [asked] = outside.calls("filter")
    assert asked["NodeNames"] is None
    assert {item["metadata"]["name"] for item in asked["Nodes"]["items"]} == {"n1", "n2"}
    assert asked["Nodes"]["items"][0]["status"]["allocatable"]["cpu"] == "4"


async def test_a_pod_that_extenders_reject_has_the_reason_and_is_requeued_by_any_event(
    outside: Outside,
) -> None:
    outside.answers(
        filter={
            "body": {
                "NodeNames": [],
                "FailedNodes": {"n1": "no licence", "n2": "busy"},
                "FailedAndUnresolvableNodes": {"n2": "too old"},
            }
        }
    )
    api = cluster("n1", "n2")
    async with running(api, config=config(at(outside, **ASKS_ALL))) as parts:
        await api.until(lambda: bool(message(api)))
        assert message(api).startswith("0/2 nodes are available: 1 no licence, 1 too old.")
        # Even the pod's own new condition is an event; the second rejection changes nothing more.
        await api.until(lambda: parts.queue.counts()["unschedulable"] == 1)
        [waiting] = parts.queue.unschedulable()
        assert waiting.rejectors == {"Extender"}
        outside.answers(
            filter={"body": {"NodeNames": ["n1"]}}, prioritize={"body": [{"Host": "n1", "Score": 1}]}
        )
        touched = node("n1", cpu="4")
        touched.metadata.labels["touched"] = "yes"
        api.put(touched)
        await api.until(lambda: api.pod("p").spec.nodeName == "n1")


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ({"body": {"Error": "out of order"}}, "out of order"),
        ({"status": 500, "body": {}}, "failed filter with extender at URL {url}/filter, code 500"),
        ({"body": {"NodeNames": ["n9"]}}, 'extender "{url}" claims a filtered node "n9" which is not found'),
        ({"body": [1]}, "expected an object, got [1]"),
        ({"body": {}, "hang_seconds": 20}, "{url}/filter"),
    ],
)
async def test_a_failing_extender_fails_the_pod_unless_it_is_ignorable(
    outside: Outside, answer: dict[str, Any], wanted: str
) -> None:
    outside.answers(filter=answer)
    api = cluster("n1", "n2")
    seconds = 0.3 if "hang_seconds" in answer else PATIENCE_SECONDS
    extender = at(outside, filter_verb="filter", node_cache_capable=True, http_timeout_seconds=seconds)
    with capture_logs() as entries:
        async with running(api, config=config(extender)):
            await api.until(lambda: bool(message(api)))
    assert wanted.format(url=outside.url) in message(api)
    assert api.pod("p").status.conditions[0].reason == "SchedulerError"
    [first, *_] = [entry for entry in entries if entry["event"] == "Error scheduling pod; retrying"]
    assert first["exc_info"] is None  # an extender fails as it likes: no traceback
    api = cluster("n1", "n2")
    async with running(api, config=config(replace(extender, ignorable=True))):
        await api.until(lambda: bool(api.pod("p").spec.nodeName))


async def test_a_failing_score_is_no_score(outside: Outside) -> None:
    outside.answers(prioritize={"status": 503, "body": {}})
    api = cluster("n1", "n2")
    async with running(api, config=config(at(outside, prioritize_verb="prioritize", weight=1))):
        await api.until(lambda: bool(api.pod("p").spec.nodeName))
    assert outside.calls() == ["prioritize"]


async def test_an_extender_is_called_only_for_pods_that_request_its_resources(outside: Outside) -> None:
    outside.answers(filter={"body": {"NodeNames": []}})
    api = cluster("n1", pods=())
    api.put(pod("plain").pod)
    extender = at(outside, filter_verb="filter", managed_resources=("example.com/gpu",))
    async with running(api, config=config(extender)):
        await api.until(lambda: bool(api.pod("plain").spec.nodeName))
        assert outside.calls() == []
        wants = pod("wants").pod
        wants.spec.containers[0].resources.limits["example.com/gpu"].string = "0"
        api.put(wants)
        await api.until(lambda: bool(message(api, "wants")))
    assert outside.calls() == ["filter"]


async def test_an_extender_binds_instead_of_the_scheduler(outside: Outside) -> None:
    outside.answers(bind={"body": {}})
    api = cluster("n1")
    async with running(api, config=config(at(outside, bind_verb="bind"))):
        await api.until(lambda: ("Scheduled", "p", "Successfully assigned default/p to n1") in api.events)
    assert api.writes("p") == []
    assert outside.calls("bind") == [
        {"PodName": "p", "PodNamespace": "default", "PodUID": "uid-p", "Node": "n1"}
    ]


async def test_a_binding_that_the_extender_rejects_is_undone_or_done_here(outside: Outside) -> None:
    outside.answers(bind={"body": {"Error": "not today"}})
    api = cluster("n1")
    async with running(api, config=config(at(outside, bind_verb="bind"))):
        await api.until(lambda: message(api) == "not today")
    api = cluster("n1")
    async with running(api, config=config(at(outside, bind_verb="bind", ignorable=True))):
        await api.until(lambda: api.pod("p").spec.nodeName == "n1")


async def test_a_nominated_node_costs_one_node_and_a_rejection_there_falls_through(outside: Outside) -> None:
    outside.answers(filter={"body": {"NodeNames": ["n2"]}})
    api = cluster("n1", "n2", "n3", pods=())
    api.put(pod("p", nominated="n2").pod)
    extender = at(outside, filter_verb="filter", node_cache_capable=True)
    async with running(api, config=config(extender)):
        await api.until(lambda: api.pod("p").spec.nodeName == "n2")
        assert [call["NodeNames"] for call in outside.calls("filter")] == [["n2"]]
        api.put(pod("q", nominated="n1").pod)  # the answer names n2, which was not asked about: an error
        await api.until(lambda: api.pod("q").spec.nodeName == "n2")
    asked = [sorted(call["NodeNames"]) for call in outside.calls("filter")]
    assert asked == [["n2"], ["n1"], ["n1", "n2", "n3"]]


async def test_the_rejection_of_a_nominated_node_is_kept_where_the_pod_may_not_go(outside: Outside) -> None:
    outside.answers(filter={"body": {"NodeNames": [], "FailedNodes": {"n2": "busy"}}})
    api = cluster("n1", "n2", "n3", pods=())
    api.put(node("n1", cpu="1"))
    plugin = Narrowing()
    api.put(pod("p", cpu="2", nominated="n2").pod)
    async with running(api, plugin, config=config(at(outside, filter_verb="filter"))):
        await api.until(lambda: bool(message(api)))
    assert message(api).startswith(
        "0/3 nodes are available: 1 Insufficient cpu, 1 busy, 1 node(s) didn't satisfy plugin(s) [Narrowing]."
    )


def full_cluster() -> FakeApi:
    """Two nodes, each full of one pod of low priority, and one of higher priority that waits."""
    api = cluster("n1", "n2", cpu="1", pods=())
    for name in ("n1", "n2"):
        api.put(pod(f"low-{name}", on=name).pod)
    api.put(pod("vip", priority=10).pod)
    return api


@pytest.mark.parametrize("caches", [True, False])
async def test_an_extender_takes_candidates_for_preemption_away(outside: Outside, caches: bool) -> None:
    answer = {"NodeNameToMetaVictims": {"n2": {"Pods": [{"UID": "uid-low-n2"}], "NumPDBViolations": 0}}}
    outside.answers(preempt={"body": answer})
    api = full_cluster()
    extender = at(outside, preempt_verb="preempt", node_cache_capable=caches)
    async with running(api, config=config(extender)):
        await api.until(lambda: api.pod("vip").spec.nodeName == "n2")
    assert [request.key for request in api.requests if request.verb == "delete"] == ["default/low-n2"]
    asked = outside.calls("preempt")[0]
    victims = asked["NodeNameToMetaVictims" if caches else "NodeNameToVictims"]
    assert set(victims) == {"n1", "n2"}
    [victim] = victims["n1"]["Pods"]
    assert (victim["UID"] if caches else victim["metadata"]["name"]) == ("uid-low-n1" if caches else "low-n1")


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ({"body": {"NodeNameToMetaVictims": {}}}, "preemption: no candidate node for preemption"),
        ({"status": 500, "body": {}}, "preemption: failed preempt with extender"),
        (
            {"body": {"NodeNameToMetaVictims": {"n1": {"Pods": []}}}},
            'preemption: expected at least one victim pod on node "n1"',
        ),
        (
            {"body": {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "who"}]}}}},
            "claims to preempt pod (UID: who) on node: n1",
        ),
    ],
)
async def test_without_candidates_no_pod_is_evicted(
    outside: Outside, answer: dict[str, Any], wanted: str
) -> None:
    outside.answers(preempt=answer)
    api = full_cluster()
    async with running(api, config=config(at(outside, preempt_verb="preempt"))):
        await api.until(lambda: bool(message(api, "vip")))
        assert wanted in message(api, "vip")
        assert "delete" not in [request.verb for request in api.requests]
        assert kinds.POD in api.objects
