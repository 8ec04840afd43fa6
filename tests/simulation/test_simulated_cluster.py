"""The processes of a simulated cluster are started with other options, or as they were."""

from __future__ import annotations

from nominee.lab.scenario.clusters.simulated_cluster import SimulatedCluster
from nominee.lab.scenario.fields.options import ClusterOptions, ComponentOptions
from nominee.lab.scenario.play.simulate import with_cluster
from nominee.simulation.simulation import Simulation

GATES = {"NominatedNodeNameForExpectation": False}
OPTIONS = ClusterOptions(nodes=1, without=("autoscaler", "cloud", "controllers"))


def gates(cluster: SimulatedCluster) -> dict[str, bool]:
    """Return the gates that the scheduler was started with last."""
    found = [each for each in cluster._processes.configured if each.component == "scheduler"]
    return {name: found[-1].gates[name] for name in GATES}


def test_a_process_that_is_restarted_without_options_keeps_those_that_it_had() -> None:
    async def use(cluster: SimulatedCluster) -> None:
        await cluster.restart("scheduler", ComponentOptions(feature_gates=GATES), kill=True)
        await cluster.restart("scheduler", None, kill=True)
        assert gates(cluster) == GATES
        await cluster.stop("scheduler", kill=True)
        await cluster.start("scheduler", None)
        assert gates(cluster) == GATES
        await cluster.restart("scheduler", ComponentOptions(), kill=True)
        assert gates(cluster) != GATES

    with_cluster(OPTIONS, Simulation(1), use)


def test_its_failpoints_are_those_of_one_start() -> None:
    async def use(cluster: SimulatedCluster) -> None:
        options = ComponentOptions(feature_gates=GATES, failpoints={"scheduler.bind.before": "error"})
        for given, count in ((options, 1), (None, 0)):
            await cluster.restart("scheduler", given, kill=True)
            assert gates(cluster) == GATES
            arguments = cluster._processes._more["scheduler"]
            assert sum(each.startswith("--failpoints=") for each in arguments) == count

    with_cluster(OPTIONS, Simulation(1), use)
