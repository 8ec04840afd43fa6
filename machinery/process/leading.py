"""Lead as a process: wait for the lease, and end the process when it is lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from prometheus_client import Gauge

from nominee.machinery.client.api_client import Client
from nominee.machinery.client.leader_election import LeaderElector, LeadershipLostError, Timing
from nominee.machinery.process.component import Fatal, Process
from nominee.machinery.runtime import host

MASTER_STATUS: Final = "leader_election_master_status"
_MASTER_STATUS_TEXT: Final = "[ALPHA] 1 if this process holds the lease `name`, 0 if it is a standby."


async def run_as_leader(
    process: Process,
    client: Client,
    lead: Callable[[], Awaitable[None]],
    *,
    name: str,
    namespace: str = "kube-system",
    timing: Timing | None = None,
) -> None:
    """Run `lead` once this process has the lease, until it ends; health check and metric follow the lease.

    Source: component-base 1.36, metrics/prometheus/clientgo/leaderelection.

    Raises:
        Fatal: the lease was lost. A new process starts without the state of a former leader, as upstream's.
    """
    elector = LeaderElector(
        client,
        name=name,
        namespace=namespace,
        identity=f"{host.current().name()}_{process.name}_{host.current().pid()}",
        timing=timing,
        clock=process.clock,
        rng=process.rng,
    )
    process.serving.health.add("leaderElection", elector.check_renewed, ["healthz", "readyz"])
    registry = process.serving.metrics()
    status = Gauge(MASTER_STATUS, _MASTER_STATUS_TEXT, ["name"], registry=registry)
    status.labels(name).set_function(lambda: elector.leading)
    try:
        await elector.run(lead)
    except LeadershipLostError as error:
        raise Fatal(f"leaderelection lost: {error}") from None
    finally:
        registry.unregister(status)
