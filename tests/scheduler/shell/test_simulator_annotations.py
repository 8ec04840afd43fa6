"""What plugins said lies on the pod after each attempt, for one PATCH, and only when asked for."""

from __future__ import annotations

import json
from typing import Any

from nominee.scheduler.simulator_results import HISTORY, PREFIX
from tests.scheduler.builders import node, pod
from tests.scheduler.shell.conftest import running
from tests.support.fake_api import FakeApi


def said(api: FakeApi, name: str, what: str) -> Any:
    text = api.pod(name).metadata.annotations[f"{PREFIX}{what}"]
    return text if what == "selected-node" else json.loads(text)


async def test_a_pod_that_is_bound() -> None:
    api = FakeApi()
    api.put(node("n1"))
    api.put(node("n2"))
    api.put(node("small", cpu="500m"))
    api.put(pod("p").pod)
    async with running(api, records=True):
        await api.until(lambda: HISTORY in api.pod("p").metadata.annotations)
    chosen = api.pod("p").spec.nodeName
    assert said(api, "p", "selected-node") == chosen
    assert said(api, "p", "filter-result")["small"]["NodeResourcesFit"] == "Insufficient cpu"
    assert set(said(api, "p", "filter-result")[chosen].values()) == {"passed"}
    assert said(api, "p", "prefilter-result-status")["NodeResourcesFit"] == "success"
    assert said(api, "p", "prefilter-result-status")["VolumeRestrictions"] == ""  # skipped
    raw, final = said(api, "p", "score-result"), said(api, "p", "finalscore-result")
    assert set(raw) == set(final) == {"n1", "n2"}
    assert final["n1"]["TaintToleration"] == "300"  # normalized, times its weight
    assert raw["n1"]["TaintToleration"] == "0"
    assert said(api, "p", "bind-result") == {"DefaultBinder": "success"}
    assert said(api, "p", "postfilter-result") == {}
    assert len(said(api, "p", "result-history")) == 1
    assert [verb for verb, _ in api.writes("p")] == ["bind", "patch"]


async def test_a_pod_that_preempts_and_is_tried_again() -> None:
    api = FakeApi()
    api.put(node("n1", cpu="1"))
    api.put(pod("low", on="n1").pod)
    api.put(pod("high", priority=5).pod)
    async with running(api, records=True):
        await api.until(lambda: len(json.loads(api.pod("high").metadata.annotations[HISTORY] or "[]")) == 2)
    first, second = said(api, "high", "result-history")
    assert json.loads(first[f"{PREFIX}postfilter-result"])["n1"]["DefaultPreemption"] == "preemption victim"
    assert first[f"{PREFIX}selected-node"] == ""
    assert json.loads(first[f"{PREFIX}filter-result"])["n1"]["NodeResourcesFit"] == "Insufficient cpu"
    assert second[f"{PREFIX}selected-node"] == "n1"


async def test_nothing_is_written_without_the_flag() -> None:
    api = FakeApi()
    api.put(node("n1"))
    api.put(pod("p").pod)
    async with running(api):
        await api.until(lambda: bool(api.pod("p").spec.nodeName))
    assert not api.pod("p").metadata.annotations
