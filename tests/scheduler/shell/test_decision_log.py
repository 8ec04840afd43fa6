"""The lines that the scheduler logs for its decisions and for the answers of plugins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from nominee.scheduler.framework.resize_preemption import Flavour, ResizePreemption
from nominee.scheduler.preemption.selection import CRITERIA, best_candidates
from tests.scheduler.builders import node as node_of
from tests.scheduler.builders import pod as pod_of
from tests.scheduler.preemption.test_decision import NOW, candidate, started
from tests.scheduler.resizing import GATE, V1_37, growing, node, pod, settled
from tests.scheduler.shell.conftest import running
from tests.support.fake_api import FakeApi

Lines = list[Any]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Capture the lines at debug and above, as (message, labels)."""
    before, capture = structlog.get_config(), LogCapture()
    structlog.configure(
        processors=[capture],
        wrapper_class=structlog.make_filtering_bound_logger(10),
        cache_logger_on_first_use=False,
    )
    yield capture.entries
    structlog.configure(**before)


def found(lines: Lines, message: str) -> list[dict[str, str]]:
    """Return the labels of the lines with this message, without those that differ from run to run."""
    skip = ("event", "log_level", "seconds")
    return [
        {key: str(value) for key, value in line.items() if key not in skip}
        for line in lines
        if line["event"] == message
    ]


async def test_a_bound_pod_and_one_that_fits_nowhere(lines: Lines) -> None:
    api = FakeApi()
    api.put(node_of("n1", cpu="2"))
    api.put(node_of("n2", cpu="2"))
    async with running(api) as parts:
        api.put(pod_of("small", cpu="1").pod)
        api.put(pod_of("big", cpu="3").pod)
        await api.until(lambda: parts.queue.counts()["unschedulable"] == 1)
        await api.until(lambda: bool(found(lines, "Successfully bound pod to node")))
    [bound] = found(lines, "Successfully bound pod to node")
    assert bound == {
        "pod": "default/small",
        "node": api.pod("small").spec.nodeName,
        "evaluatedNodes": "2",
        "feasibleNodes": "2",
    }
    [failed] = found(lines, "Unable to schedule pod; no fit; waiting")
    assert failed["pod"] == "default/big"
    assert failed["err"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    [rejected] = found(lines, "Plugin rejected nodes")
    assert (rejected["plugin"], rejected["nodes"], rejected["reasons"]) == (
        "NodeResourcesFit", "2", "Insufficient cpu",
    )  # fmt: skip
    scored = found(lines, "Plugins scored node")
    assert {each["node"] for each in scored} == {"n1", "n2"}
    assert all("NodeResourcesFit=" in each["scores"] for each in scored)


async def test_a_preemption_names_victims_and_criterion_and_the_nomination_its_reason(lines: Lines) -> None:
    api = FakeApi()
    api.put(node_of("n1", cpu="2"))
    api.put(pod_of("victim", cpu="2", node="n1", priority=1).pod)
    async with running(api) as parts:
        api.put(pod_of("high", cpu="2", priority=10).pod)
        await api.until(lambda: bool(found(lines, "Nomination written")))
        assert parts.queue is not None
    [preemption] = found(lines, "Preemptor pod preempts victims")
    assert preemption == {
        "preemptor": "default/high",
        "node": "n1",
        "victims": "default/victim",
        "priority": "10",
        "victimPriorities": "1",
        "numPDBViolations": "0",
        "chosenBy": "the only candidate",
    }
    [nomination] = found(lines, "Nomination written")
    assert nomination == {
        "pod": "default/high", "node": "n1", "before": "", "reason": "preemption makes room there",
    }  # fmt: skip


def test_the_criterion_that_decides_between_candidates() -> None:
    low, high = candidate("a", started("x", 1)), candidate("b", started("y", 5))
    assert best_candidates([high, low], NOW) == ([low], CRITERIA[1])
    early, late = candidate("a", started("x", 5, 10)), candidate("b", started("y", 5, 20))
    assert best_candidates([early, late], NOW) == ([late], CRITERIA[4])


async def test_a_deferred_resize_is_queued_parked_and_leaves(lines: Lines) -> None:
    api = FakeApi()
    for obj in (node("node1", "300m"), pod("victim", "200m"), growing()):
        api.put(obj)
    options = ResizePreemption(Flavour.KEP)
    async with running(api, version=V1_37, gates={GATE: True}, resize_preemption=options):
        await api.until(lambda: bool(found(lines, "Deferred resize does not fit; waiting")))
        assert [each["pod"] for each in found(lines, "Deferred resize queued")] == ["default/growing"]
        assert found(lines, "Preemptor pod preempts victims")[0]["victims"] == "default/victim"
        await api.until(lambda: bool(found(lines, "Deferred resize parked")))
        api.put(settled())
        await api.until(lambda: bool(found(lines, "Deferred resize left the queue")))
    [left] = found(lines, "Deferred resize left the queue")
    assert left == {
        "pod": "default/growing",
        "node": "node1",
        "reason": "the resize is not deferred any more",
    }
