"""An API server's answer was true at some moment between request and answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nominee.lab.history.invariants.check import Check
from nominee.lab.history.invariants.checking.answers import Answer, Method, Outcome
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.objects.true_answers import TrueAnswers
from nominee.machinery.api import kinds
from tests.lab.invariants.histories import History, node, pod

NAME = TrueAnswers.about.name
# Revision 1: created, 3: changed, 5: terminating, 6: gone, 8: created again; the others are of a node.
HISTORY = (
    History()
    .put(pod("p"), node("n1"), pod("p", node="n1"), node("n1"), pod("p", node="n1", deletes_at=1.8e9))
    .delete(pod("p"))
    .put(node("n1"), pod("p", uid="uid-2"), node("n1"))
)


def _answer(outcome: Outcome, method: Method, begin: int, end: int, version: int = 0) -> Answer:
    return Answer(
        client="scheduler",
        method=method,
        outcome=outcome,
        kind=kinds.POD,
        namespace="default",
        name="p",
        begin=begin,
        end=end,
        resource_version=version,
    )


def _problems(*answers: Answer, history: History = HISTORY) -> list[str]:
    check = Check(ComponentSettings(observes_answers=True), [NAME])
    for revision in history.revisions:
        check.observe(revision)
        for answer in answers:
            if answer.end == revision.revision:
                check.observe_answer(answer)
    (result,) = check.finish(Evidence(now=history.now))
    assert result.checked == len(answers)
    return [violation.message for violation in result.violations]


DONE, GET, UPDATE, DELETE = Outcome.DONE, Method.GET, Method.UPDATE, Method.DELETE


@pytest.mark.parametrize(
    "answer",
    [
        _answer(DONE, Method.CREATE, 0, 1, 1),
        _answer(DONE, UPDATE, 2, 3, 3),
        _answer(DONE, UPDATE, 3, 4, 3),
        _answer(DONE, UPDATE, 1, 4, 1),
        _answer(DONE, UPDATE, 5, 6, 5),
        _answer(DONE, GET, 2, 4, 1),
        _answer(DONE, DELETE, 4, 5),
        _answer(DONE, DELETE, 5, 7),
        _answer(Outcome.NOT_FOUND, GET, 0, 1),
        _answer(Outcome.NOT_FOUND, Method.PATCH, 6, 7),
        _answer(Outcome.NOT_FOUND, DELETE, 5, 8),
        _answer(Outcome.ALREADY_EXISTS, Method.CREATE, 0, 1),
        _answer(Outcome.CHANGED, UPDATE, 2, 3, 1),
        _answer(Outcome.CHANGED, UPDATE, 3, 4, 1),
        _answer(DONE, Method.LIST, 4, 5, 3),
        _answer(DONE, Method.LIST, 4, 5, 5),
        _answer(Outcome.REFUSED, Method.LIST, 4, 5, 0),
    ],
    ids=str,
)
def test_true_answers(answer: Answer) -> None:
    assert _problems(answer) == []


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (_answer(DONE, UPDATE, 3, 4, 1), "the object had version 3"),
        (_answer(DONE, UPDATE, 2, 4, 4), "the object had the versions 1, 3"),
        (_answer(DONE, Method.CREATE, 8, 9, 8), "the object had the versions none"),
        (_answer(DONE, GET, 6, 7, 5), "the object had version 6"),
        (_answer(DONE, DELETE, 2, 4), "the object exists and is not terminating"),
        (_answer(Outcome.NOT_FOUND, Method.PATCH, 2, 4), "the object existed all the time"),
        (_answer(Outcome.ALREADY_EXISTS, Method.CREATE, 6, 7), "the object did not exist"),
        (_answer(Outcome.CHANGED, UPDATE, 3, 4, 3), "it was the newest all the time"),
    ],
    ids=str,
)
def test_answers_that_were_never_true(answer: Answer, problem: str) -> None:
    (message,) = _problems(answer)
    assert message.startswith(f"scheduler was answered '{answer.outcome.value}'")
    assert message.endswith(f"between the revisions {answer.begin} and {answer.end}: {problem}")


@pytest.mark.parametrize(
    ("version", "problem"), [(2, "a later write was there before the request"), (9, "no such revision yet")]
)
def test_lists(version: int, problem: str) -> None:
    (message,) = _problems(_answer(DONE, Method.LIST, 4, 5, version))
    assert f"a list of pods of resourceVersion {version}" in message
    assert message.endswith(problem)


def test_the_violation_names_the_object_and_its_versions() -> None:
    check = Check(ComponentSettings(observes_answers=True), [NAME])
    for revision in HISTORY.revisions[:4]:
        check.observe(revision)
    (violation,) = check.observe_answer(_answer(DONE, UPDATE, 2, 4, 4))
    assert violation.objects == ("Pod default/p",)
    assert violation.revisions == (1, 3)
    node_answer = replace(_answer(DONE, GET, 3, 3, 1), kind=kinds.NODE, namespace="", name="n1")
    (violation,) = check.observe_answer(node_answer)
    assert violation.objects == ("Node n1",)


def test_it_is_not_checked_where_answers_are_not_observed() -> None:
    (result,) = Check(ComponentSettings(), [NAME]).finish(Evidence(now=1.0))
    assert result.unchecked == "the answers of the API servers were not observed"


def test_a_write_that_names_a_uid_is_done_to_this_object() -> None:
    binding = replace(_answer(DONE, UPDATE, 2, 3), uid="uid-p", node="n1")
    assert _problems(binding) == []
    assert _problems(replace(binding, end=5), replace(binding, node="")) == []
    (message,) = _problems(replace(binding, uid="uid-2"))
    assert message.endswith("no object of uid uid-2 was there bound to n1")
    (message,) = _problems(replace(binding, node="n2"))
    assert message.endswith("no object of uid uid-p was there bound to n2")
    (message,) = _problems(replace(_answer(DONE, DELETE, 5, 7), uid="uid-2"))
    assert message.endswith("no object of uid uid-2 was there")


def test_an_update_replaces_the_version_that_it_was_made_from() -> None:
    update = _answer(DONE, UPDATE, 2, 3, 3)
    assert _problems(replace(update, expected_version=1), replace(update, expected_version=3)) == []
    lost = replace(_answer(DONE, UPDATE, 4, 5, 5), expected_version=1)
    assert _problems(replace(lost, expected_version=3)) == []
    (message,) = _problems(lost)
    assert message.endswith("it was made from version 1, and replaced version 3")


@pytest.mark.parametrize(("node", "is_found"), [("n1", False), ("n2", True)])
def test_an_update_whose_outcome_was_lost_may_be_seen_in_equal_bytes(node: str, is_found: bool) -> None:
    # Revision 2 is the update, 3 is another client's, and 4 puts the object back, or changes it again.
    written = pod("p", node="n1")
    history = History().put(pod("p"), written, pod("p", node="n3"), pod("p", node=node))
    update = replace(_answer(DONE, UPDATE, 1, 4, 4), expected_version=1)
    assert bool(_problems(update, history=history)) is is_found
