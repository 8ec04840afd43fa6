"""nominatedNodeName follows KEP-5278's states."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.preemption.nominations import (
    TRANSITIONS,
    Nominations,
    NominationState,
    Verdict,
)
from tests.lab.invariants.histories import History, pod, result_of, violations_of

CLEARS = ComponentSettings(clears_nominations=True)
KEEPS = ComponentSettings(clears_nominations=False)
PENDING, NOMINATED = pod("p"), pod("p", nominated="n1")
BOUND, BOUND_NOMINATED = pod("p", node="n1"), pod("p", node="n1", nominated="n1")
PODS = {
    NominationState.PENDING: PENDING,
    NominationState.NOMINATED: NOMINATED,
    NominationState.BOUND: BOUND,
    NominationState.BOUND_NOMINATED: BOUND_NOMINATED,
}
DEFERRED = {"PodResizePending": "Deferred"}


@pytest.mark.parametrize(("old", "new"), [pair for pair in TRANSITIONS if pair[0] is not pair[1]])
@pytest.mark.parametrize("settings", [CLEARS, KEEPS], ids=["clears", "keeps"])
def test_a_transition_is_allowed_as_the_table_says(
    old: NominationState, new: NominationState, settings: ComponentSettings
) -> None:
    history = History()
    if old is not NominationState.ABSENT:
        history.state(PODS[old])
    found = violations_of(Nominations, history.put(PODS[new]), settings)
    allowed = {
        Verdict.ALLOWED: True,
        Verdict.FORBIDDEN: False,
        Verdict.WITHOUT_CLEARING: settings is KEEPS,
    }[TRANSITIONS[old, new]]
    assert (found == []) is allowed


def test_the_life_of_a_preemptor() -> None:
    history = History().put(PENDING, NOMINATED, pod("p", nominated="n2"), PENDING, NOMINATED, BOUND)
    result = result_of(Nominations, history.put(pod("p", node="n1", phase="Running")), CLEARS)
    assert result.violations == ()
    assert result.checked == 6
    assert result.counts == {"nominations": 3}


def test_a_nomination_that_is_kept_by_binding() -> None:
    history = History().put(PENDING, NOMINATED, BOUND_NOMINATED)
    (violation,) = violations_of(Nominations, history, CLEARS)
    assert violation.message == (
        "the pod was nominated, nominatedNodeName n1 and is bound and nominated, nodeName n1, "
        "nominatedNodeName n1; this is allowed if ClearingNominatedNodeNameAfterBinding is off"
    )
    assert violation.revisions == (3,)
    assert result_of(Nominations, history, KEEPS).exceptions == {"kept-after-binding": 1}
    assert result_of(Nominations, history, ComponentSettings()).violations == ()


def test_a_bound_pod_with_a_deferred_resize_may_be_nominated_to_its_node() -> None:
    deferred = pod("p", node="n1", conditions=DEFERRED)
    nominated = pod("p", node="n1", nominated="n1", conditions=DEFERRED)
    elsewhere = pod("p", node="n1", nominated="n2", conditions=DEFERRED)
    option_3 = ComponentSettings(clears_nominations=True, nominates_deferred_resizes=True)
    result = result_of(Nominations, History().put(deferred, nominated), option_3)
    assert result.violations == ()
    assert result.exceptions == {"deferred-resize": 1}
    assert len(violations_of(Nominations, History().put(deferred, elsewhere), option_3)) == 1
    assert len(violations_of(Nominations, History().put(BOUND, BOUND_NOMINATED), option_3)) == 1
    assert len(violations_of(Nominations, History().put(deferred, nominated), CLEARS)) == 1


def test_a_pod_bound_to_another_node_is_counted() -> None:
    result = result_of(Nominations, History().put(NOMINATED, pod("p", node="n2")), CLEARS)
    assert [violation.message for violation in result.violations] == [
        "the pod was new and is nominated, nominatedNodeName n1; this is forbidden"
    ]
    assert result.counts == {"nominations": 1, "bound-elsewhere": 1}


def test_another_pod_of_the_name_begins_again() -> None:
    history = History().put(PENDING, BOUND).delete(BOUND).put(pod("p", uid="other"))
    assert violations_of(Nominations, history, CLEARS) == []
