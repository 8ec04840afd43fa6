"""Read the state of a cluster that seems to be at rest until no rule has a finding, or the time is over."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from google.protobuf.message import Message

from nominee.lab.chaos.rest.copies import STATE, WITH_STATE, scopes_of
from nominee.lab.chaos.rest.memory import MEMORY
from nominee.lab.chaos.rest.nodes import AUTOSCALER, CLOUD, EVENTS, GIVEN_UP, GROUPS, LOOP, too_small
from nominee.lab.chaos.rest.past.changes_of_room import last_changes_of_room
from nominee.lab.chaos.rest.past.inherited_nominations import inherited_nominations
from nominee.lab.chaos.rest.past.left_nodes import left_nodes
from nominee.lab.chaos.rest.past.listed_jobs import listed_jobs
from nominee.lab.chaos.rest.past.other_dependents import owners_of_others
from nominee.lab.chaos.rest.past.unreserved_claims import unreserved_claims
from nominee.lab.chaos.rest.rules import findings
from nominee.lab.chaos.rest.scheduling import (
    EXPLANATION,
    QUEUE,
    SCHEDULER,
    entries_of_others,
    explanation_path,
    fits_somewhere,
    is_pending,
)
from nominee.lab.chaos.rest.shapes import other_shapes
from nominee.lab.chaos.rest.state import FINDING_SECONDS_MAX, LISTED, Expectations, Finding, Scope, State
from nominee.lab.chaos.rest.workloads.back_offs import lacking
from nominee.lab.chaos.rest.workloads.jobs import is_unlisted
from nominee.lab.chaos.rest.workloads.refusals import ADMITTING, Sample, samples
from nominee.lab.chaos.rest.workloads.reservations import foreground_deletions, is_unreserved
from nominee.lab.scenario.cluster import ScenarioCluster
from nominee.lab.scenario.observing.leader import leading
from nominee.localcluster.cluster import ClusterError, ProcessState
from nominee.localcluster.supervisor.model.states import ChildState
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, is_not_found
from nominee.machinery.api.objects import key_of, metadata_of
from nominee.machinery.api.pb import core
from nominee.machinery.wire.values.scalars import Json

POLL_SECONDS = 0.5
SOON_SECONDS = 5.0
LATER_POLL_SECONDS = 2.5
"""Between observations of a finding that stays after SOON_SECONDS: each costs about as much as a step."""
NAMED_MAX = 5
_REFUSED = (403, 422)
EXPLAINED_MAX = 50
"""Pending pods that the scheduler explains; each costs it a scheduling cycle."""
ASKED_MAX = 50
"""Pods of owners, and claims, for which the API server is asked; each costs it a request."""


async def outstanding(cluster: ScenarioCluster, expectations: Expectations) -> tuple[str, bool]:
    """Wait until no rule has a finding; return those that stay, and whether there were some at first.

    A finding counts when it was there at two observations in a row: objects of several kinds are not read at
    one moment.
    """
    start = cluster.clock.monotonic()
    before: Sequence[Finding] | None = None
    while True:
        found = await _findings(cluster, expectations)
        if not found:
            return "", before is not None
        seconds, now = cluster.clock.monotonic() - start, cluster.clock.now()
        twice = [each for each in found if before is None or each in before]
        lasting = [each for each in twice if min(seconds, now - each.due) >= each.seconds_max]
        if lasting:
            return "; ".join(map(str, lasting[:NAMED_MAX])), True
        if seconds >= FINDING_SECONDS_MAX and not twice:
            return "", True
        before = found
        await cluster.clock.sleep(POLL_SECONDS if seconds < SOON_SECONDS else LATER_POLL_SECONDS)


async def _findings(cluster: ScenarioCluster, expectations: Expectations) -> list[Finding]:
    try:
        state = await observe(cluster, expectations)
        found = findings(state)
        if not found and expectations.shapes is not None:
            # It costs as much as all the rest, and would be asked for at each look.
            found = list(other_shapes(await with_memory(cluster, state)))
        return found
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
    ready = await _ready(cluster)
    running = frozenset(each.component for each in ready)
    objects = {kind: (await _list(cluster, Scope(kind))) for kind in LISTED}
    asked = [each.name for each in ready if each.component in WITH_STATE]
    scopes = {scope for name in asked for scope in scopes_of(await _document(cluster, name, STATE))}
    revisions = {scope: _revisions(await _list(cluster, scope)) for scope in sorted(scopes, key=str)}
    debug: dict[tuple[str, str], Json] = {
        (name, STATE): await _document(cluster, name, STATE) for name in asked
    }
    if AUTOSCALER in running:
        debug[AUTOSCALER, LOOP] = await _document(cluster, await leading(cluster, AUTOSCALER), LOOP)
    if CLOUD in running:
        debug[CLOUD, GROUPS] = await _document(cluster, CLOUD, GROUPS)
        if too_small(debug[CLOUD, GROUPS] or {}):
            events: Sequence[core.Event] = (await cluster.client.list(kinds.EVENT)).items
            given_up = [each for each in events if each.reason in GIVEN_UP]
            debug[AUTOSCALER, EVENTS] = [each.message for each in given_up for _ in range(max(each.count, 1))]
    schedulers = sum(each.component == SCHEDULER for each in ready)
    # Without an election no scheduler knows all pods.
    if schedulers == 1 or (schedulers and _is_elected(objects[kinds.LEASE])):
        debug |= await _of_scheduler(cluster, objects[kinds.POD])
    state = State(
        objects=objects,
        now=cluster.clock.now(),
        running=running,
        debug={place: document for place, document in debug.items() if document is not None},
        revisions=revisions,
        expectations=expectations,
    )
    return await _with_past(cluster, state)


async def _with_past(cluster: ScenarioCluster, state: State) -> State:
    """Return the state with the facts of the history that it needs, which is slow to read, and refusals."""
    queue, jobs = state.debug.get((SCHEDULER, QUEUE)), state.of(kinds.JOB)
    entries = list(entries_of_others(queue, state.of(kinds.POD)))
    others = [pod for _, pod in entries]
    if others:
        rejectors = {plugin for entry, _ in entries for plugin in entry["plugins"]}
        changed = last_changes_of_room(await cluster.history(), others, rejectors)
        state = replace(state, room_changed=changed)
    if others or any(
        path.startswith(EXPLANATION) and fits_somewhere(document)
        for (_, path), document in state.debug.items()
    ):
        state = replace(state, left_nodes=tuple(left_nodes(await cluster.history())))
    if queue is not None and queue["nominated"]:
        state = replace(state, inherited_nominations=inherited_nominations(await cluster.history()))
    if any(map(is_unreserved, state.of(kinds.RESOURCE_CLAIM))):
        state = replace(state, unreserved_claims=unreserved_claims(await cluster.history()))
    if owners := list(lacking(state)):
        admitting = {kind: await _list(cluster, Scope(kind)) for kind in ADMITTING}
        asked = samples(replace(state, objects={**state.objects, **admitting}), owners)
        state = replace(state, refusals=await _refusals(cluster, asked))
    if any(foreground_deletions(state)):
        state = replace(state, other_owners=owners_of_others(await cluster.history(), LISTED))
    if any(is_unlisted(cron_job, job) for cron_job in state.of(kinds.CRON_JOB) for job in jobs):
        state = replace(state, listed_jobs=listed_jobs(await cluster.history()))
    return state


async def _refusals(cluster: ScenarioCluster, asked: Iterable[tuple[str, Sample]]) -> frozenset[str]:
    """Return the uids of the owners whose samples are refused, and of those that are not asked for."""
    return frozenset(
        [
            uid
            for index, (uid, sample) in enumerate(asked)
            if index >= ASKED_MAX or await _is_refused(cluster, sample)
        ]
    )


async def _is_refused(cluster: ScenarioCluster, sample: Sample) -> bool:
    """Return whether the API server would refuse to create a pod or a claim.

    The defaults of a LimitRange may make a pod invalid.
    """
    try:
        await cluster.client.create(sample, dry_run=True)
    except StatusError as error:
        return error.code in _REFUSED
    return False


def _is_elected(leases: Sequence[Message]) -> bool:
    """Return whether schedulers elect a leader."""
    return any(metadata_of(lease).name == "kube-scheduler" for lease in leases)


async def with_memory(cluster: ScenarioCluster, state: State) -> State:
    """Return a state with the holdings of its processes, those of each component together.

    Another one may lead than before.

    Raises:
        ClusterError: the processes cannot be listed.
    """
    found: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for each in await _ready(cluster):
        document = await _document(cluster, each.name, MEMORY)
        for part, counts in (document or {}).items():
            found[each.component][part] += Counter(counts)
    memory: dict[tuple[str, str], Json] = {(component, MEMORY): parts for component, parts in found.items()}
    return replace(state, debug={**state.debug, **memory})


async def _ready(cluster: ScenarioCluster) -> list[ProcessState]:
    return [each for each in await cluster.processes() if each.state == ChildState.READY]


async def _document(cluster: ScenarioCluster, process: str, path: str) -> Json:
    """Return a document of a process; None for a program that is not Nominee's, which has none."""
    try:
        return await cluster.http_json(process, path)
    except ClusterError:
        return None


async def _of_scheduler(cluster: ScenarioCluster, pods: Sequence[Message]) -> dict[tuple[str, str], Json]:
    """Return the queue of the scheduler that leads, and its explanations of pending pods."""
    name = await leading(cluster, SCHEDULER)
    queue = await _document(cluster, name, QUEUE)
    debug: dict[tuple[str, str], Json] = {(SCHEDULER, QUEUE): queue}
    if queue is not None:
        pending = [pod for pod in pods if isinstance(pod, core.Pod) and is_pending(pod)]
        for path in map(explanation_path, pending[:EXPLAINED_MAX]):
            debug[SCHEDULER, path] = await cluster.http_json(name, path)
    return debug


async def _list(cluster: ScenarioCluster, scope: Scope) -> Sequence[Message]:
    """Return the objects of a scope, none where the kind is not served."""
    try:
        listed = await cluster.client.list(
            scope.kind,
            scope.namespace,
            label_selector=scope.label_selector,
            field_selector=scope.field_selector,
        )
    except StatusError as error:
        if is_not_found(error):
            return ()
        raise
    return listed.items


def _revisions(objects: Sequence[Message]) -> dict[str, str]:
    return {str(key_of(each)): metadata_of(each).resourceVersion for each in objects}
