"""A resize that was granted is not taken back."""

from __future__ import annotations

import pytest

from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.invariants.pod_rules.granted_resizes import GrantedResizes
from nominee.machinery.api.pb import core
from tests.lab.invariants.histories import History, result_of, violations_of
from tests.lab.invariants.histories import pod as any_pod

SETTINGS = ComponentSettings(lists_newest=frozenset({"kubelet"}))


def pod(cpu: str, allocated: str, generation: int, observed: int = 0) -> core.Pod:
    """Return a pod that requests cpu at a generation, and has some allocated."""
    found = any_pod("p", node="n1", cpu=cpu, allocated=allocated)
    found.metadata.generation = generation
    found.status.observedGeneration = observed
    return found


RESIZED = [pod("1", "1", 1, 1), pod("2", "1", 2, 1), pod("2", "2", 2, 2)]


@pytest.mark.parametrize(
    "history",
    [
        History().put(*RESIZED),
        History().put(*RESIZED, pod("1", "2", 3, 2), pod("1", "1", 3, 3)),
        History().put(*RESIZED[:2], pod("1", "1", 3, 1), pod("1", "2", 3, 2), pod("1", "1", 3, 3)),
        History().put(*RESIZED, any_pod("p", node="n1", phase="Failed")),
        History().put(*RESIZED).delete(RESIZED[0]).put(pod("1", "1", 1, 1)),
    ],
    ids=["granted", "reverted", "reverted before it was read", "ended", "another pod"],
)
def test_correct_allocations(history: History) -> None:
    assert violations_of(GrantedResizes, history, SETTINGS) == []


@pytest.mark.parametrize(
    "history",
    [
        History().put(*RESIZED, pod("2", "1", 2, 2)),
        History().put(*RESIZED[:2], pod("2", "1500m", 2, 2)),
    ],
    ids=["taken back", "another amount"],
)
def test_an_allocation_that_was_not_requested(history: History) -> None:
    (violation,) = violations_of(GrantedResizes, history, SETTINGS)
    assert "the allocation of container 'c' went from cpu" in violation.message
    assert violation.message.endswith("which the spec does not request")
    assert violation.objects == ("Pod default/p",)


def test_a_restarted_kubelet_may_begin_with_an_older_state() -> None:
    result = result_of(GrantedResizes, History().put(*RESIZED, pod("2", "1", 2, 2)), ComponentSettings())
    assert result.violations == ()
    assert result.exceptions == {"stale-start": 1}
