"""Move processes to an API server that lags, after another one has served them (Sieve's time travel)."""

from __future__ import annotations

from contextlib import suppress

from nominee.chaos.case import LAG_SECONDS, Case, Move, ToServer
from nominee.scenario.cluster import ClusterError, ScenarioCluster
from nominee.scenario.model import ComponentOptions, InjectFault

_API_SERVER = "apiserver"


def moves(case: Case) -> list[ToServer]:
    """Return the moves of a case."""
    return [each for each in case.perturbations if isinstance(each, ToServer)]


def lag(each: ToServer) -> InjectFault:
    """Return the fault by which the server of a move sees no changes."""
    return InjectFault(component=each.server, to="etcd", action="hold")


async def move(cluster: ScenarioCluster, case: Case) -> None:
    """Move the processes of a case, wait for LAG_SECONDS, and let the servers catch up.

    Raises:
        ClusterError: a process cannot be moved.
    """
    found = moves(case)
    for each in found:
        if each.move is Move.TRAVEL:
            options = ComponentOptions(arguments=(f"--apiserver={each.server}",))
            await cluster.restart(each.component, options, kill=True)
        else:
            others = [p.name for p in await cluster.processes() if p.component == _API_SERVER]
            for other in others:
                if other != each.server:
                    cut = InjectFault(component=each.component, to=other, action="cut")
                    await cluster.inject_fault(cut)
    if found:
        await cluster.clock.sleep(LAG_SECONDS)
    for each in found:
        with suppress(ClusterError):
            await cluster.inject_fault(InjectFault(component=each.server, to="etcd", action="off"))


async def move_back(cluster: ScenarioCluster, case: Case) -> None:
    """Restart the processes that were moved: they choose a server as at first.

    Raises:
        ClusterError: one of them does not start.
    """
    for component in dict.fromkeys(each.component for each in moves(case)):
        await cluster.restart(component, ComponentOptions(), kill=False)
