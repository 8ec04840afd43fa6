"""A process that repeats a request in vain waits longer each time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from nominee.lab.history.invariants.check import Check
from nominee.lab.history.invariants.checking.answers import Answer, Method, Outcome
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.processes.retries import USER, Retries
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import owner_reference
from nominee.machinery.api.pb import apps, policy
from tests.lab.invariants.histories import History, pod

REFUSED = Answer(
    client="controllers",
    method=Method.CREATE,
    outcome=Outcome.REFUSED,
    kind=kinds.POD,
    namespace="default",
    name="",
    generate_name="web-",
    begin=1,
    end=1,
    client_pid=101,
)
IDLE = replace(
    REFUSED, method=Method.UPDATE, outcome=Outcome.DONE, name="p", generate_name="", resource_version=7
)
CREATED = replace(REFUSED, outcome=Outcome.DONE, name="web-x", resource_version=9)


def _at(times: Iterable[float], answer: Answer = REFUSED) -> list[Answer]:
    return [replace(answer, begin_time=time) for time in times]


def _problems(answers: Iterable[Answer], history: History | None = None) -> list[str]:
    check = Check(ComponentSettings(observes_answers=True), [Retries.about.name])
    for revision in () if history is None else history.revisions:
        check.observe(revision)
    for answer in answers:
        check.observe_answer(answer)
    (result,) = check.finish(Evidence(now=0.0))
    return [violation.message for violation in result.violations]


def _doubling(seconds: float, count: int) -> list[float]:
    return [seconds * (2**number - 1) for number in range(count)]


@pytest.mark.parametrize(
    "answers",
    [
        _at(_doubling(0.005, 20)),
        _at(range(80)),
        _at([0.01 * number for number in range(30)]),
        _at([0.01 * (number // 3) for number in range(90)]),
        [*_at([0.0] * 30), CREATED, *_at([0.1] * 30)],
        [replace(IDLE, begin_time=0.01 * number, resource_version=number) for number in range(80)],
        [replace(REFUSED, outcome=Outcome.ALREADY_EXISTS)] * 80,
        [replace(REFUSED, client_pid=number, begin_time=0.0) for number in range(80)],
        [replace(REFUSED, name=f"p{number}", generate_name="") for number in range(80)],
        [replace(REFUSED, generate_name=f"web-{number % 5}-") for number in range(80)],
    ],
    ids=[
        "doubles",
        "each second",
        "thirty",
        "three at once",
        "one succeeds",
        "changes",
        "exists",
        "other processes",
        "other objects",
        "other owners",
    ],
)
def test_no_hurry(answers: list[Answer]) -> None:
    assert _problems(answers) == []


def test_a_back_off_that_does_not_grow() -> None:
    assert _problems(_at([0.005 * number for number in range(32)])) == [
        "controllers made 31 requests to create Pod default/web-* within 1 s, each in vain; "
        "the last one was 'refused'"
    ]


def test_a_pause_that_is_too_short() -> None:
    (found,) = _problems(_at([0.15 * number for number in range(62)]))
    assert "made 61 requests to create Pod default/web-* within 10 s" in found


def test_writes_that_change_nothing() -> None:
    (found,) = _problems(_at([0.01 * number for number in range(32)], IDLE))
    assert found.endswith("each in vain; the last one changed nothing")


def test_the_client_of_a_scenario_may_ask_often() -> None:
    times = [each / 100 for each in range(200)]
    assert _problems(_at(times))
    assert _problems(_at(times, replace(REFUSED, client=USER))) == []


def test_each_change_of_a_pod_is_a_reason_to_write_the_status_of_its_owner() -> None:
    owner = apps.ReplicaSet()
    owner.metadata.name, owner.metadata.namespace, owner.metadata.uid = "web", "default", "uid-web"
    owned = pod("web-x")
    owned.metadata.ownerReferences.append(owner_reference(owner))
    refused = replace(
        REFUSED, method=Method.UPDATE, outcome=Outcome.CHANGED, kind=kinds.REPLICA_SET, name="web"
    )
    answers = _at([0.01 * number for number in range(32)], replace(refused, generate_name=""))
    assert len(_problems(answers, History().put(pod("other"), pod("other")))) == 1
    assert _problems(answers, History().put(owned, owned)) == []
    assert len(_problems(answers, History().put(owned))) == 1
    written = replace(refused, outcome=Outcome.DONE, generate_name="", resource_version=9)
    assert len(_problems([written, *answers], History().put(owned, owned))) == 1


def test_each_change_of_a_pod_is_a_reason_to_write_the_status_of_its_budget() -> None:
    budget = policy.PodDisruptionBudget()
    budget.metadata.name, budget.metadata.namespace = "web", "default"
    budget.spec.selector.matchLabels["app"] = "web"
    selected = pod("web-x")
    selected.metadata.labels["app"] = "web"
    refused = replace(
        REFUSED,
        method=Method.UPDATE,
        outcome=Outcome.CHANGED,
        kind=kinds.POD_DISRUPTION_BUDGET,
        name="web",
        generate_name="",
    )
    answers = _at([0.01 * number for number in range(32)], refused)
    assert _problems(answers, History().put(budget, selected, selected)) == []
    assert len(_problems(answers, History().put(budget, selected))) == 1
    assert len(_problems(answers, History().put(budget, pod("other"), pod("other")))) == 1
    assert len(_problems(answers, History().put(selected, selected, budget))) == 1
