"""How extension points run plugins, also such as come from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from nominee.scheduler.framework.api.events import ActionType, ClusterEvent, EventResource
from nominee.scheduler.framework.cycle_state import CycleState
from nominee.scheduler.framework.interface import (
    Code,
    FilterPlugin,
    NominatingInfo,
    NominatingMode,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    ScorePlugin,
    Status,
)
from nominee.scheduler.framework.runtime.framework import Framework, ScoreError
from nominee.scheduler.framework.runtime.plugin_set import PluginConfigError
from nominee.scheduler.framework.runtime.profile import Profile
from nominee.scheduler.framework.scheduling.algorithm import (
    AlgorithmError,
    NoNodesError,
    find_feasible,
    num_feasible_nodes_to_find,
    schedule_pod,
    survey,
)
from nominee.scheduler.framework.scheduling.diagnosis import FitError
from nominee.scheduler.framework.types import NodeInfo, PodInfo
from nominee.scheduler.plugins.registry import IN_TREE
from tests.scheduler.builders import UNREAD, Desk, Scripted, desk, node, pod
from tests.scheduler.performing import binding_plugins
from tests.support.patience import PATIENCE_SECONDS


@dataclass
class Odd(FilterPlugin, ScorePlugin):
    """From outside: rejects nodes with even numbers, likes high ones; knows nothing of columns."""

    name: str = "Odd"
    code: Code = Code.Unschedulable
    asked: list[str] = field(default_factory=list)
    factor: int = 1

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        self.asked.append(node.name)
        return Status(self.code, ("even",)) if int(node.name[1:]) % 2 == 0 else None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return self.factor * int(node.name[1:])


def ready(*plugins: Any, nodes: int = 6, **options: Any) -> Desk:
    prepared = desk(*plugins, **options)
    prepared.add_nodes(*(node(f"n{i}") for i in range(nodes)))
    prepared.cache.update_snapshot(prepared.framework.snapshot)
    return prepared


def found(prepared: Desk, who: PodInfo, **options: Any) -> list[str]:
    framework = prepared.framework
    search, _ = find_feasible(framework, CycleState(), who, framework.snapshot, **options)
    return [framework.snapshot.nodes[row].name for row in search.rows.tolist()]


def test_a_plugin_from_outside_filters_and_scores() -> None:
    prepared = ready(Odd(factor=10))
    framework = prepared.framework
    assert found(prepared, pod("a")) == ["n1", "n3", "n5"]
    result = schedule_pod(framework, CycleState(), pod("a"), framework.snapshot, rng=framework.rng)
    assert result.node_name == "n5"


def test_filter_runs_only_for_nodes_that_earlier_plugins_passed() -> None:
    odd = Odd()
    prepared = ready(without=(*IN_TREE.keys() - {"NodeName", "PrioritySort"},), nodes=4)
    framework = prepared.framework
    framework.filter_plugins.append(odd)
    with pytest.raises(FitError):
        found(prepared, pod("a", nodeName="n2"))
    assert set(odd.asked) == {"n2"}


def test_the_first_rejection_of_a_node_is_reported() -> None:
    prepared = ready(Odd())
    with pytest.raises(FitError) as caught:
        found(prepared, pod("big", cpu="5"))
    diagnosis = caught.value.diagnosis
    assert diagnosis.unschedulable_plugins == {"Odd", "NodeResourcesFit"}
    assert diagnosis.statuses.get("n0").plugin == "Odd"
    assert diagnosis.statuses.get("n1").code is Code.UnschedulableAndUnresolvable
    assert str(caught.value) == "0/6 nodes are available: 3 Insufficient cpu, 3 even."


def test_a_node_is_filtered_once_and_its_rejection_is_kept() -> None:
    """A filter that answers otherwise when it is asked again rejects all the same."""

    class Fickle(Odd):
        def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
            self.asked.append(node.name)
            return None if self.asked.count(node.name) > 1 else Status(Code.Unschedulable, ("today",))

    fickle = Fickle()
    with pytest.raises(FitError, match="0/6 nodes are available: 6 today"):
        found(ready(fickle), pod("a"))
    assert sorted(fickle.asked) == [f"n{i}" for i in range(6)]


def test_pending_plugins_are_kept_apart() -> None:
    with pytest.raises(FitError) as caught:
        found(ready(Odd(code=Code.Pending), nodes=1), pod("a"))
    assert caught.value.diagnosis.pending_plugins == {"Odd"}


def test_a_filter_that_fails_is_an_error() -> None:
    with pytest.raises(Exception, match='running "Odd" filter plugin: even'):
        found(ready(Odd(code=Code.Error)), pod("a"))


def test_a_score_out_of_range_is_an_error() -> None:
    prepared = ready(Odd(factor=50))
    framework = prepared.framework
    with pytest.raises(ScoreError, match=r"invalid score 250, it should in the range of \[0, 100\]"):
        schedule_pod(framework, CycleState(), pod("a"), framework.snapshot, rng=framework.rng)


@pytest.mark.parametrize(
    ("percentage", "nodes", "wanted"),
    [(None, 50, 50), (None, 99, 99), (None, 100, 100), (None, 1000, 420), (None, 5000, 500),
     (None, 6000, 300), (0, 5000, 500), (40, 1000, 400), (5, 1000, 100), (100, 700, 700)],
)  # fmt: skip
def test_how_many_nodes_are_enough(percentage: int | None, nodes: int, wanted: int) -> None:
    assert num_feasible_nodes_to_find(percentage, nodes) == wanted


def test_the_search_goes_on_where_it_stopped() -> None:
    prepared = ready(nodes=150)
    framework, start, seen = prepared.framework, 0, []
    for _ in range(3):
        search, start = find_feasible(
            framework, CycleState(), pod("a"), framework.snapshot, start=start, percentage=10
        )
        seen.append((int(search.rows[0]), int(search.rows[-1]), len(search.rows), search.processed))
    assert seen == [(0, 99, 100, 100), (100, 49, 100, 100), (50, 149, 100, 100)]
    assert start == 0


def test_rejected_nodes_count_as_looked_at() -> None:
    prepared = ready(Odd(), nodes=300)
    framework = prepared.framework
    search, start = find_feasible(
        framework, CycleState(), pod("a"), framework.snapshot, start=0, percentage=10
    )
    assert (len(search.rows), search.processed, start) == (100, 200, 200)


@pytest.mark.parametrize("search", [find_feasible, survey])
def test_a_cluster_without_nodes_is_no_fit_error(search: Callable[..., object]) -> None:
    """PreFilter does not run, and there is no count of nodes: the message is upstream's NoNodesAvailable."""
    prepared = ready(Gate(status=Status(Code.Error, error=ValueError("PreFilter ran"))), nodes=0)
    framework = prepared.framework
    with pytest.raises(NoNodesError, match="no nodes available to schedule pods"):
        search(framework, CycleState(), pod("a"), framework.snapshot)


@dataclass
class Gate(PreFilterPlugin, PostFilterPlugin):
    """Answers as the test says."""

    name: str = "Gate"
    narrowed: PreFilterResult | None = None
    status: Status | None = None
    post: tuple[PostFilterResult | None, Status | None] = (None, None)

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Any
    ) -> tuple[PreFilterResult | None, Status | None]:
        if self.status is not None and self.status.error is not None:
            raise self.status.error
        return self.narrowed, self.status

    def post_filter(
        self, state: CycleState, pod: PodInfo, statuses: Any
    ) -> tuple[PostFilterResult | None, Status | None]:
        return self.post


def test_narrowing_is_reported_for_the_nodes_left_out() -> None:
    prepared = ready(Gate(narrowed=PreFilterResult(frozenset({"n1", "gone"}))), nodes=3)
    assert found(prepared, pod("a")) == ["n1"]
    with pytest.raises(FitError) as caught:
        found(prepared, pod("big", cpu="5"))
    assert str(caught.value) == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [Gate]."
    )
    assert caught.value.diagnosis.unschedulable_plugins == {"Gate", "NodeResourcesFit"}


@pytest.mark.parametrize("search", [find_feasible, survey])
def test_the_own_nominated_node_keeps_its_rejection_outside_the_narrowing(
    search: Callable[..., Any],
) -> None:
    prepared = ready(nodes=3)
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    who = pod("big", cpu="5", nominated="n2", affinity={"nodeAffinity": required})
    try:
        diagnosis = search(prepared.framework, CycleState(), who, prepared.framework.snapshot).diagnosis
    except FitError as error:
        diagnosis = error.diagnosis
    assert str(FitError(3, diagnosis)) == (
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector,"
        " 1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )
    assert diagnosis.unschedulable_plugins == {"NodeAffinity", "NodeResourcesFit"}


def test_preemption_tries_the_own_nominated_node_outside_the_narrowing() -> None:
    prepared = ready(Gate(narrowed=PreFilterResult(frozenset({"n1"}))), nodes=3)
    for name in ("n1", "n2"):
        prepared.cache.add_pod(pod(f"on-{name}", cpu="3", on=name))
    prepared.cache.update_snapshot(prepared.framework.snapshot)
    with pytest.raises(FitError) as caught:
        found(prepared, pod("a", cpu="3", nominated="n2"))
    statuses, snapshot = caught.value.diagnosis.statuses, prepared.framework.snapshot
    assert [each.name for each in statuses.nodes_with_code(snapshot, Code.Unschedulable)] == ["n1", "n2"]


def test_narrowing_to_nothing_is_a_rejection() -> None:
    first = Gate("First", PreFilterResult(frozenset({"n1"})))
    second = Gate("Second", PreFilterResult(frozenset({"n2"})))
    with pytest.raises(FitError, match=r"didn't satisfy plugin\(s\) \[First Second\] simultaneously"):
        found(ready(first, second), pod("a"))
    with pytest.raises(FitError, match=r"didn't satisfy plugin Empty\."):
        found(ready(Gate("Empty", PreFilterResult(frozenset()))), pod("a"))


def test_a_later_hopeless_rejection_wins_over_a_plain_one() -> None:
    first = Gate("First", status=Status(Code.Unschedulable, ("perhaps",)))
    second = Gate("Second", status=Status(Code.UnschedulableAndUnresolvable, ("never",)))
    with pytest.raises(FitError) as caught:
        found(ready(first, second), pod("a"))
    assert caught.value.diagnosis.unschedulable_plugins == {"Second"}
    assert str(caught.value) == "0/6 nodes are available: never."


def test_a_plugin_that_raises_is_an_error_with_its_name() -> None:
    broken = Gate("Broken", status=Status(Code.Error, error=ValueError("oh")))
    with pytest.raises(AlgorithmError, match='running PreFilter plugin "Broken": oh'):
        found(ready(broken), pod("a"))


def test_post_filters_add_their_reasons_until_one_succeeds() -> None:
    clear = PostFilterResult(NominatingInfo(NominatingMode.Override, ""))
    first = Gate("First", post=(None, Status(Code.Unschedulable, ("one",))))
    second = Gate("Second", post=(clear, Status(Code.Unschedulable, ("two",))))
    framework = ready(first, second).framework
    result, status = framework.run_post_filter_plugins(CycleState(), pod("a"), UNREAD)
    assert result is clear
    assert (status.code, status.reasons, status.plugin) == (Code.Unschedulable, ("one", "two"), "First")
    wins = PostFilterResult(NominatingInfo(NominatingMode.Override, "n1"))
    framework = ready(first, Gate("Wins", post=(wins, None)), second).framework
    result, status = framework.run_post_filter_plugins(CycleState(), pod("a"), UNREAD)
    assert result is wins
    assert status.is_success


def test_a_pod_leaves_room_for_others_nominated_to_the_node() -> None:
    prepared = ready(nodes=2)
    prepared.nominator.add(pod("rival", cpu="3", nominated="n0", priority=10))
    assert found(prepared, pod("a", cpu="2", priority=10)) == ["n1"]
    assert found(prepared, pod("a", cpu="2", priority=11)) == ["n0", "n1"]
    assert found(prepared, pod("a", cpu="1", priority=0)) == ["n0", "n1"]
    prepared.nominator.add(pod("other", cpu="3", nominated="n1", priority=10))
    with pytest.raises(FitError, match="2 Insufficient cpu"):
        found(prepared, pod("a", cpu="2", priority=10))


def test_the_own_nominated_node_is_taken_at_once() -> None:
    prepared = ready(Odd(), nodes=4)
    own = pod("a", nominated="n3")
    prepared.nominator.add(own)
    assert found(prepared, own) == ["n3"]
    assert found(prepared, pod("b", nominated="n2")) == ["n1", "n3"]
    assert found(prepared, pod("c", nominated="gone")) == ["n1", "n3"]


@dataclass
class Step(PreBindPlugin):
    """A PreBind plugin that notes when it runs."""

    name: str
    log: list[str]
    parallel: bool = False
    flight: Status | None = None
    result: Status | None = None
    meet: anyio.Event | None = None

    def pre_bind_pre_flight(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, bool]:
        return self.flight, self.parallel

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        self.log.append(f"{self.name} begins")
        if self.meet is not None:
            if self.meet.is_set() or not self.parallel:
                self.meet.set()
            else:
                await self.meet.wait()
        self.log.append(f"{self.name} ends")
        return self.result


SKIP = Status(Code.Skip)


async def test_pre_bind_runs_neighbours_that_allow_it_beside_each_other() -> None:
    log: list[str] = []
    arrived = anyio.Event()

    class Second(Step):
        async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
            arrived.set()
            return await super().pre_bind(state, pod, node_name)

    steps = [
        Step("A", log, parallel=True, meet=arrived),  # waits until B has begun
        Second("B", log, parallel=True),
        Step("C", log),
        Step("D", log, flight=SKIP),
    ]
    framework, state = ready(*steps, without=("VolumeBinding",)).framework, CycleState()
    assert framework.run_pre_bind_pre_flights(state, pod("a"), "n1").is_success
    with anyio.fail_after(PATIENCE_SECONDS):
        assert await binding_plugins(framework).pre_bind(framework, state, pod("a"), "n1") is None
    assert log[0] == "A begins"
    assert log.index("B begins") < log.index("A ends")
    assert log[-2:] == ["C begins", "C ends"]


async def test_nothing_to_pre_bind_is_a_skip() -> None:
    framework = ready(Step("A", [], flight=SKIP)).framework
    assert framework.run_pre_bind_pre_flights(CycleState(), pod("a"), "n1").is_skip


@pytest.mark.parametrize(
    ("flight", "text"),
    [
        (Status(Code.Error, ("boom",)), 'running PreBindPreFlight "A": boom'),
        (
            Status(Code.Unschedulable, ("boom",)),
            'PreBindPreFlight A returned "Unschedulable", which is unsupported.'
            " It is supposed to return Success, Skip, or Error status",
        ),
    ],
)
async def test_a_failed_pre_flight_is_an_error(flight: Status, text: str) -> None:
    framework = ready(Step("A", [], flight=flight)).framework
    status = framework.run_pre_bind_pre_flights(CycleState(), pod("a"), "n1")
    assert (status.code, status.reasons) == (Code.Error, (text,))


async def test_a_failed_pre_bind_stops_the_rest() -> None:
    log: list[str] = []
    failing = Step("A", log, result=Status(Code.Error, ("no",)))
    framework, state = ready(failing, Step("B", log)).framework, CycleState()
    framework.run_pre_bind_pre_flights(state, pod("a"), "n1")
    status = await binding_plugins(framework).pre_bind(framework, state, pod("a"), "n1")
    assert status is not None
    assert status.reasons == ('running PreBind plugin "A": no',)
    assert log == ["A begins", "A ends"]


async def test_binding_is_left_to_the_next_plugin_by_a_skip() -> None:
    first = Scripted("First", bind_status=SKIP)
    second = Scripted("Second", bind_status=None)
    framework = ready(first, second).framework
    assert await binding_plugins(framework).bind(framework, CycleState(), pod("a"), "n1") is None
    assert (first.calls, second.calls) == (["bind n1"], ["bind n1"])


def test_unreserve_runs_backwards() -> None:
    log: list[str] = []
    first, second = Scripted("First", calls=log), Scripted("Second", calls=log)
    second.reserve_status = Status(Code.Unschedulable, ("no",))
    framework = ready(first, second).framework
    status = framework.run_reserve_plugins(CycleState(), pod("a"), "n1")
    assert status is not None
    assert status.plugin == "Second"
    framework.run_unreserve_plugins(CycleState(), pod("a"), "n1")
    assert log == ["reserve n1", "reserve n1", "unreserve n1", "unreserve n1"]


def test_permit_collects_waits_with_a_limit() -> None:
    patient = Scripted("Patient", permit_status=(Status(Code.Wait), 10_000.0))
    brief = Scripted("Brief", permit_status=(Status(Code.Wait), 3.0))
    framework = ready(patient, brief).framework
    status, waits = framework.run_permit_plugins(CycleState(), pod("a"), "n1")
    assert status is not None
    assert status.is_wait
    assert waits == {"Patient": 900.0, "Brief": 3.0}
    rejects = Scripted("Rejects", permit_status=(Status(Code.Unschedulable, ("no",)), 0.0))
    status, waits = ready(patient, rejects).framework.run_permit_plugins(CycleState(), pod("a"), "n1")
    assert status is not None
    assert (status.plugin, waits) == ("Rejects", {})


def test_a_registration_of_added_nodes_includes_taint_changes() -> None:
    registered = ready(Odd()).framework.events_to_register()
    assert registered["Odd"] is None  # every event
    fit = registered["NodeResourcesFit"]
    assert fit is not None
    taint = ClusterEvent(EventResource.Node, ActionType.UpdateNodeTaint)
    assert taint in {r.event for r in fit}


def test_profiles_that_cannot_run_are_rejected() -> None:
    environment = ready().framework.environment
    with pytest.raises(PluginConfigError, match="exactly one queueSort plugin"):
        Framework(Profile(), IN_TREE, environment)
