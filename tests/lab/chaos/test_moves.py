"""A kubelet restarts, and is served by an API server that lags (in simulations)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.enumeration import Scope
from nominee.lab.chaos.cases.verdict import Verdict
from nominee.lab.chaos.clusters import SimulatedClusters
from nominee.lab.chaos.explorer import ExplorationSettings, Explorer, Report
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.reading import read_file
from tests.mutations.catalogue import BY_NAME
from tests.mutations.patch import applied

pytestmark = pytest.mark.processes  # an explored cluster goes on in forks

FILE = Path(__file__).parents[2] / "mutations" / "scenarios" / "recreated.yaml"


@pytest.fixture
def mutated() -> Iterator[None]:
    """Let the kubelet remove pods by name, whatever their uid."""
    undo = applied(BY_NAME["pod-removed-by-name"].edits)
    yield
    undo()


def scenario(kubelet: Mapping[str, bool]) -> Scenario:
    """Return the scenario with these gates of the kubelet."""
    (found,) = read_file(FILE)
    components = dict(found.cluster.components)
    components["kubelet"] = replace(components["kubelet"], feature_gates=kubelet)
    return replace(found, cluster=replace(found.cluster, components=components))


def explore(
    played: Scenario,
    *,
    case: str = "",
    only: str = "",
    seed: int = 1,
) -> Report:
    settings = ExplorationSettings(
        scope=Scope(losses=(), jumps=(), only=(only,) if only else (), hits=1, seed=seed),
        budget_seconds=120.0,
        case=Case.parse(case) if case else None,
        simulate=True,
    )
    with TemporaryDirectory() as base:  # for what is kept of findings
        return Explorer(played, SimulatedClusters(played, Path(base)), settings, lambda _: None).run()


OLD_LIST = {"WatchListClient": False}
TRAVEL = "kubelet-0:apiserver-1=travel@6"


@pytest.mark.usefixtures("mutated")
@pytest.mark.parametrize(("gates", "verdict"), [(OLD_LIST, Verdict.BROKEN), ({}, Verdict.HELD)])
def test_a_list_of_the_newest_state_protects_from_it(gates: Mapping[str, bool], verdict: Verdict) -> None:
    (result,) = explore(scenario(gates), case=TRAVEL, seed=5).results
    assert result.verdict is verdict, result.observation
    assert ("is there 0 times, and once after the undisturbed run" in result.observation) is (
        verdict is Verdict.BROKEN
    )


@pytest.mark.slow  # 10 to 20 s of processor time
def test_moves_from_each_step_that_changes_objects() -> None:
    report = explore(scenario(OLD_LIST), only="kubelet-0:apiserver-1=*")
    assert {str(each.case): each.verdict for each in report.results} == {
        f"kubelet-0:apiserver-1={move}{step}": Verdict.HELD
        for move in ("travel", "switch")
        for step in ("", "@4", "@6", "@8")
    }
