"""Move processes to an API server that lags, after another one has served them (Sieve's time travel)."""

from __future__ import annotations

from contextlib import suppress

from nominee.lab.chaos.cases.case import Case
from nominee.lab.chaos.cases.perturbations import LAG_SECONDS, Move, ToServer
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.fields.options import ComponentOptions
from nominee.lab.scenario.steps.faults.fault import InjectFault
from nominee.localcluster.cluster import ClusterError

_API_SERVER = "apiserver"
_SERVERS = ("etcd", _API_SERVER)


def moves(case: Case) -> list[ToServer]:
    """Return the moves of a case."""
    return [each for each in case.perturbations if isinstance(each, ToServer)]


def lag(each: ToServer) -> InjectFault:
    """Return the fault by which the server of a move sees no changes."""
    return InjectFault(component=each.server, to="etcd", action="hold")


async def keep_away(cluster: ScenarioCluster, case: Case) -> None:
    """Move all clients to the servers that do not lag.

    When a cluster starts, any server may be the first that they find.
    """
    for each in moves(case):
        await _all(cluster, "cut", to=each.server)


async def _all(cluster: ScenarioCluster, action: str, *, to: str) -> None:
    """Set a fault of calls to a server in every client of the API servers that runs."""
    for process in await cluster.processes():
        if process.component not in _SERVERS:
            with suppress(ClusterError):
                await cluster.inject_fault(process.name, action, to=to)


async def move(cluster: ScenarioCluster, case: Case) -> None:
    """Move the processes of a case, and wait for LAG_SECONDS.

    Raises:
        ClusterError: a process cannot be moved.
    """
    found = moves(case)
    for each in found:
        if each.move is Move.TRAVEL:
            options = ComponentOptions(arguments=(f"--apiserver={each.server}",))
            await cluster.restart(each.component, options, kill=True)
        else:
            await cluster.inject_fault(each.component, "off", to=each.server)
            for process in await cluster.processes():
                if process.component == _API_SERVER and process.name != each.server:
                    await cluster.inject_fault(each.component, "cut", to=process.name)
    if found:
        await cluster.clock.sleep(LAG_SECONDS)


async def catch_up(cluster: ScenarioCluster, case: Case) -> None:
    """Let the servers see all changes, and remove the faults of their clients."""
    for each in moves(case):
        with suppress(ClusterError):
            await cluster.inject_fault(each.server, "off", to="etcd")
        await _all(cluster, "off", to="*")


async def move_back(cluster: ScenarioCluster, case: Case) -> None:
    """Restart the processes that were moved: they choose a server as at first.

    Raises:
        ClusterError: one of them does not start.
    """
    for component in dict.fromkeys(each.component for each in moves(case)):
        await cluster.restart(component, ComponentOptions(), kill=False)
