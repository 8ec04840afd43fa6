"""Read the state of a cluster that seems to be at rest until no rule has a finding, or the time is over."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import Message

from nominee.lab.chaos.rest.rules import findings
from nominee.lab.chaos.rest.scheduling import QUEUE, SCHEDULER, explanation_path, is_pending
from nominee.lab.chaos.rest.state import LISTED, Expectations, Finding, State
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.observing.leader import leading
from nominee.localcluster.cluster import ClusterError
from nominee.localcluster.supervisor.model.states import ChildState
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import core
from nominee.machinery.wire.values.scalars import Json

FINDING_SECONDS_MAX = 60.0
"""For retries, back-offs and periodic work, all of which a correct cluster has done in this time."""
POLL_SECONDS = 0.5
NAMED_MAX = 5
EXPLAINED_MAX = 50
"""Pending pods that the scheduler explains; each costs it a scheduling cycle."""


async def outstanding(cluster: ScenarioCluster, expectations: Expectations) -> tuple[str, bool]:
    """Wait until no rule has a finding; return those that stay, and whether there were some at first.

    A finding counts when it was there at two observations in a row: objects of several kinds are not read at
    one moment.
    """
    deadline = cluster.clock.monotonic() + FINDING_SECONDS_MAX
    before: Sequence[Finding] | None = None
    while True:
        found = await _findings(cluster, expectations)
        if not found:
            return "", before is not None
        if cluster.clock.monotonic() >= deadline:
            lasting = [each for each in found if before is None or each in before]
            return "; ".join(map(str, lasting[:NAMED_MAX])), True
        before = found
        await cluster.clock.sleep(POLL_SECONDS)


async def _findings(cluster: ScenarioCluster, expectations: Expectations) -> list[Finding]:
    try:
        return findings(await observe(cluster, expectations))
    except StatusError as error:
        return [Finding("the API server", f"answers: {error.message}")]
    except ClusterError as error:
        return [Finding("the cluster", f"cannot be observed: {error}")]


async def observe(cluster: ScenarioCluster, expectations: Expectations) -> State:
    """Return the state of a cluster.

    Raises:
        StatusError: the API server does not answer.
        ClusterError: a process does not answer.
    """
    ready = [each for each in await cluster.processes() if each.state == ChildState.READY]
    objects = {kind: await _list(cluster, kind) for kind in LISTED}
    debug: dict[tuple[str, str], Json] = {}
    if any(each.component == SCHEDULER for each in ready):
        await _ask_scheduler(cluster, objects[kinds.POD], debug)
    return State(
        objects=objects,
        now=cluster.clock.now(),
        running=frozenset(each.component for each in ready),
        debug=debug,
        expectations=expectations,
    )


async def _ask_scheduler(
    cluster: ScenarioCluster, pods: Sequence[Message], debug: dict[tuple[str, str], Json]
) -> None:
    """Add the documents of the scheduler that leads; a program that is not Nominee's has none."""
    pending = [pod for pod in pods if isinstance(pod, core.Pod) and is_pending(pod)]
    name = await leading(cluster, SCHEDULER)
    try:
        debug[SCHEDULER, QUEUE] = await cluster.http_json(name, QUEUE)
    except ClusterError:
        return
    for path in map(explanation_path, pending[:EXPLAINED_MAX]):
        debug[SCHEDULER, path] = await cluster.http_json(name, path)


async def _list(cluster: ScenarioCluster, kind: AnyKind) -> Sequence[Message]:
    """Return the objects of a kind, none where it is not served."""
    try:
        return (await cluster.client.list(kind)).items
    except StatusError as error:
        if is_not_found(error):
            return ()
        raise
