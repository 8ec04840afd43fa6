"""Invariants are checked while a simulated cluster runs: the first violation ends the scenario."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from google.protobuf.message import Message

from nominee.lab.history.invariants.checking.answers import Answer, Method
from nominee.lab.history.invariants.checking.answers import Outcome as AnswerOutcome
from nominee.lab.history.invariants.checking.evidence import ComponentSettings, Evidence
from nominee.lab.history.invariants.pod_rules.pod_binding import PodBinding
from nominee.lab.scenario.clusters.running_check import RunningCheck
from nominee.lab.scenario.clusters.simulated_cluster import SimulatedCluster
from nominee.lab.scenario.format.reading import read_text
from nominee.lab.scenario.play.simulate import simulate, with_cluster
from nominee.lab.scenario.result import Outcome
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import copy_of, key_of
from nominee.machinery.api.pb import core
from nominee.machinery.wire import envelope
from nominee.simulation.etcd.store import Store
from nominee.simulation.simulation import Simulation
from tests.lab.invariants.histories import pod

WAITS = """apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: waits}
spec:
  cluster: {nodes: 1, without: [autoscaler, cloud]}
  steps:
  - expect: {eventually: {object: {kind: Pod, name: never, condition: Ready=True}}, seconds: 50}
"""
SCALES = """apiVersion: scenario.nominee.dev/v1alpha1
kind: Scenario
metadata: {name: scales}
spec:
  cluster:
    without: [controllers, scheduler]
    nodeGroups: [{name: pool, min: 0, max: 1, target: 1, template: {cpu: "4", memory: 16Gi, pods: 110}}]
    components:
      autoscaler: {args: [--scan-interval=1s, --scale-down-unneeded-time=1s, --scale-down-delay-after-add=0s]}
  steps: [{wait: {object: {kind: Node, count: 1}}}]
"""
MESSAGE = "the pod was bound to node 'n1' and is now bound to node 'n2'"
NAME = PodBinding.about.name


def put(store: Store, obj: Message, now: float) -> None:
    """Write an object, as if an API server had."""
    key = kinds.of(obj).key(*key_of(obj)).encode()
    store.write({key: (envelope.encode(obj), 0)}, now)


def test_a_violation_is_known_when_it_is_written() -> None:
    store = Store()
    put(store, pod("p", node="n1"), 1.0)
    running = RunningCheck(store, Simulation(1).network)
    assert running.violations == []
    put(store, pod("p", node="n2"), 2.0)
    (violation,) = running.violations
    assert violation.message == MESSAGE
    assert [revision.revision for revision in running.revisions] == [2, 3]


def test_the_results_can_be_asked_for_more_than_once() -> None:
    store = Store()
    running = RunningCheck(store, Simulation(1).network)
    put(store, pod("p", node="n1"), 1.0)
    settings, evidence = ComponentSettings(), Evidence(now=10.0)
    (before,) = running.results([NAME], settings, evidence)
    assert running.results([NAME], settings, evidence) == [before]
    put(store, pod("p", node="n2"), 2.0)
    (after,) = running.results([NAME], settings, evidence)
    assert (before.checked, after.checked) == (1, 2)
    assert [each.message for each in after.violations] == [MESSAGE]


def test_an_invariant_that_reads_settings_is_checked_with_those_of_the_end() -> None:
    store = Store()
    running = RunningCheck(store, Simulation(1).network)
    for written in (pod("p"), pod("p", nominated="n1"), pod("p", node="n1", nominated="n1")):
        put(store, written, 1.0)
    evidence = Evidence(now=10.0)
    for clears, violations in ((True, 1), (None, 0)):
        settings = ComponentSettings(clears_nominations=clears)
        (result,) = running.results(["nominations-follow-states"], settings, evidence)
        assert len(result.violations) == violations


def test_answers_of_the_api_server_are_compared_with_etcd(tmp_path: Path) -> None:
    observed: list[Answer] = []

    class Observing(RunningCheck):
        def _observe_answer(self, answer: Answer) -> None:
            observed.append(answer)
            super()._observe_answer(answer)

    simulation = Simulation(1)

    async def play(cluster: SimulatedCluster) -> None:
        running = Observing(simulation.store, simulation.network)
        client = cluster.client
        written = core.ConfigMap()
        written.metadata.name, written.metadata.namespace = "m", "default"
        created = await client.create(written)
        for version in ("", created.metadata.resourceVersion):
            changed = copy_of(created)
            changed.data["a"] = "b"
            changed.metadata.resourceVersion = version
            with suppress(StatusError):
                await client.update(changed)
        for name in ("m", "q"):
            with suppress(StatusError):
                await client.delete(kinds.CONFIG_MAP, name, "default")
        await client.list(kinds.CONFIG_MAP)
        await cluster.clock.sleep(15.0)
        assert running.violations == []

    (scenario,) = read_text(WAITS, str(tmp_path / "waits.yaml"))
    with_cluster(scenario.cluster, simulation, play)
    own = [each for each in observed if each.client == "user"]
    assert {(each.method, each.outcome) for each in own} >= {
        (Method.CREATE, AnswerOutcome.DONE),
        (Method.UPDATE, AnswerOutcome.DONE),
        (Method.UPDATE, AnswerOutcome.CHANGED),
        (Method.DELETE, AnswerOutcome.DONE),
        (Method.DELETE, AnswerOutcome.NOT_FOUND),
        (Method.LIST, AnswerOutcome.DONE),
    }
    assert all(each.begin <= each.end for each in observed)
    assert {each.client for each in observed} > {"user"}, "components' answers are observed"


def test_a_violation_ends_the_scenario_at_the_moment(tmp_path: Path) -> None:
    (scenario,) = read_text(WAITS, str(tmp_path / "waits.yaml"))
    simulation = Simulation(1)

    def bind_twice() -> None:
        for node in ("n1", "n2"):
            put(simulation.store, pod("ghost", node=node), simulation.loop.time())

    simulation.loop.call_later(20.0, bind_twice)
    result = simulate(scenario, 1, simulation=simulation)
    assert result.outcome is Outcome.FAILED
    assert f"during the run: {NAME}: {MESSAGE}" in result.reason
    assert [each.message for each in result.violations] == [MESSAGE]
    assert result.seconds < 25.0, "the wait of 50 s went on"


def test_the_nodes_that_an_autoscaler_asks_to_delete_are_known(tmp_path: Path) -> None:
    simulation = Simulation(1)

    async def play(cluster: SimulatedCluster) -> None:
        running = RunningCheck(simulation.store, simulation.network)
        await cluster.clock.sleep(30.0)
        ((node, asked),) = running.scaled_down.items()
        (deleted,) = [each for each in running.revisions if each.kind is kinds.NODE and each.value is None]
        assert (node, len(asked)) == (deleted.name, 1)
        assert asked[0] < deleted.revision

    (scenario,) = read_text(SCALES, str(tmp_path / "scales.yaml"))
    with_cluster(scenario.cluster, simulation, play)
