"""The daemon set controller's shell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nominee.controllers.daemon_sets.history import History, digest_of
from nominee.controllers.daemon_sets.placement import (
    BURST_MAX,
    FailedPods,
    Placement,
    Work,
    by_node,
    recheck_seconds,
    status_of,
)
from nominee.controllers.daemon_sets.pods import pod_for, template_of
from nominee.controllers.daemon_sets.rolling_update import plan_update
from nominee.controllers.owned_pods.shell.pod_owner import PodOwner
from nominee.controllers.revisions.history import REVISION_LABEL, data_of, restores
from nominee.controllers.shell.controller import Context
from nominee.controllers.shell.owner_references import adopt_and_release
from nominee.machinery.api import kinds
from nominee.machinery.api.errors import StatusError, ignoring, is_already_exists, is_not_found
from nominee.machinery.api.objects import ObjectKey, copy_of, is_terminating, key_of
from nominee.machinery.api.pb import apps, core
from nominee.machinery.runtime import failpoints
from nominee.machinery.scheduling.daemons import NodeRules, Verdict

REVISION_AFTER = failpoints.declare(
    "controllers.daemon_set.revision.after",
    "the revision of a DaemonSet's template is created; no pod has it",
)
DELETE_AFTER = failpoints.declare(
    "controllers.daemon_set.delete.after", "pods of a DaemonSet are deleted; its status is not written"
)

_BATCH_SECONDS_PER_NODE: Final = 0.0005
"""Events of pods are awaited for so long: half a second where there are 1,000 nodes."""


@dataclass(frozen=True, slots=True)
class _Spec:
    """The nodes, the revision data and the failures of one generation of a daemon set."""

    uid: str
    rules: NodeRules
    verdicts: dict[str, Verdict]
    """By the names of all nodes; the events of nodes keep them."""
    data: bytes
    failures: FailedPods

    @classmethod
    def of(cls, daemon_set: apps.DaemonSet, nodes: Iterable[core.Node]) -> _Spec:
        metadata, template = daemon_set.metadata, daemon_set.spec.template
        rules = NodeRules.of(template.spec)
        verdicts = {node.metadata.name: rules.verdict(node) for node in nodes}
        return cls(metadata.uid, rules, verdicts, data_of(template), FailedPods(metadata.generation))


class DaemonSetController(PodOwner[apps.DaemonSet]):
    """Keeps one pod of each daemon set on each node that fits, and rolls out changes of its template."""

    name = "daemonset-controller"
    component = "daemonset-controller"
    create_before = failpoints.declare(
        "controllers.daemon_set.create.before", "a node needs a pod of a DaemonSet; it is not created"
    )
    create_after = failpoints.declare(
        "controllers.daemon_set.create.after", "the pod is created; no event is recorded"
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context, kinds.DAEMON_SET)
        self._specs: dict[ObjectKey, _Spec] = {}
        self.revisions = context.informers.of(kinds.CONTROLLER_REVISION)
        self.revisions.on_change(lambda each: self.enqueue_owner(each, self.owners, self.selector_of))
        self.nodes = context.informers.of(kinds.NODE)
        self.nodes.add_handler(
            on_add=self._node_changed,
            on_update=self._node_updated,
            on_delete=lambda node, _stale: self._node_changed(node),
        )

    # --- events of nodes and pods ---

    def _node_updated(self, old: core.Node, new: core.Node) -> None:
        if old.spec.taints != new.spec.taints or old.metadata.labels != new.metadata.labels:
            self._node_changed(new)

    def _node_changed(self, node: core.Node) -> None:
        """Reconcile the daemon sets that have another verdict on the node than before."""
        name = node.metadata.name
        current = self.nodes.get(name)
        for daemon_set in self.owners.list():
            spec = self._spec(daemon_set)
            before = spec.verdicts.pop(name, None)
            if current is not None:
                spec.verdicts[name] = spec.rules.verdict(current)
            if before != spec.verdicts.get(name):
                self._enqueue(daemon_set)

    def pod_changed(self, key: ObjectKey) -> None:
        """Queue a daemon set for an event of a pod: later, the more nodes there are.

        A reconciliation looks at all nodes: a rollout on all of them shall not cost their square.
        """
        self.queue.add_after(key, len(self.nodes) * _BATCH_SECONDS_PER_NODE)

    def _spec(self, daemon_set: apps.DaemonSet) -> _Spec:
        key, metadata = key_of(daemon_set), daemon_set.metadata
        spec = self._specs.get(key)
        if spec is None or (spec.uid, spec.failures.generation) != (metadata.uid, metadata.generation):
            spec = self._specs[key] = _Spec.of(daemon_set, self.nodes.list())
        return spec

    # --- reconciliation ---

    async def reconcile(self, key: ObjectKey) -> float | None:
        daemon_set = self.owners.get(key.name, key.namespace)
        if daemon_set is None:
            self.expectations.forget(key)
            self._specs.pop(key, None)
            return None
        if is_terminating(daemon_set):
            return None  # its revisions may be gone before its pods
        # Before the pods are read: what the watch shows during the next calls is not among them.
        satisfied = self.satisfied(key)
        spec = self._spec(daemon_set)
        history, current = await self._history(daemon_set, spec.data)
        pods = await adopt_and_release(self.client, daemon_set, daemon_set.spec.selector, self.pods)
        now = self.clock.now()
        at = Placement(daemon_set, digest_of(current), dict(spec.verdicts), by_node(pods), now)
        again, failure = None, None
        if satisfied:
            try:
                again = await self._place(at, spec.failures)
                await self._truncate(daemon_set, history, pods)
            except StatusError as error:
                failure = error
        status = status_of(at, observed=satisfied)
        await self.write_status(daemon_set, status)
        if failure is not None:
            raise failure
        return min(filter(None, (again, recheck_seconds(at))), default=None)

    async def _place(self, at: Placement, failures: FailedPods) -> float | None:
        """Create and delete pods; update pods only where all nodes have theirs."""
        work = at.plan(failures)
        for event in work.events:
            self.record(at.daemon_set, event)
        await self._do(at, work or plan_update(at))
        return work.again_seconds

    async def _do(self, at: Placement, work: Work) -> None:
        template = template_of(at.daemon_set, at.digest)
        pods = [pod_for(at.daemon_set, template, node) for node in work.create[:BURST_MAX]]
        await self.in_growing_batches(pods, lambda pod: self.create_pod(at.daemon_set, pod))
        if work.delete:
            await self.in_growing_batches(
                work.delete[:BURST_MAX], lambda pod: self.delete_pod(at.daemon_set, pod)
            )
            await DELETE_AFTER.hit(owner=str(key_of(at.daemon_set)))

    # --- revisions ---

    async def _history(
        self, daemon_set: apps.DaemonSet, data: bytes
    ) -> tuple[History, apps.ControllerRevision]:
        """Return the revisions; the current one exists, is the only one of its template, and the latest."""
        selector = daemon_set.spec.selector
        revisions = await adopt_and_release(self.client, daemon_set, selector, self.revisions)
        history = History.of(daemon_set, data, revisions)
        current = history.current
        if current is None:
            return history, await self._create_revision(daemon_set, history.first(daemon_set, data))
        for each in history.duplicates:
            await self._merge(each, current, self.pods.by_index("owner", daemon_set.metadata.uid))
        if current.revision < history.number:
            current = copy_of(current)
            current.revision = history.number
            await self.client.update(current)
        return history, current

    async def _create_revision(
        self, daemon_set: apps.DaemonSet, revision: apps.ControllerRevision
    ) -> apps.ControllerRevision:
        """Create a revision; another one of the same name asks for another hash.

        Raises:
            StatusError: the API server refuses it, or the name is taken: the next attempt has another hash.
        """
        try:
            created = await self.client.create(revision)
        except StatusError as error:
            if not is_already_exists(error):
                raise
            name, namespace = revision.metadata.name, revision.metadata.namespace
            existing = await self.client.get(kinds.CONTROLLER_REVISION, name, namespace)
            if restores(existing, daemon_set.spec.template):
                return existing
            latest = await self.client.get(kinds.DAEMON_SET, daemon_set.metadata.name, namespace)
            if latest.status.collisionCount == daemon_set.status.collisionCount:
                latest = copy_of(latest)
                latest.status.collisionCount += 1
                await self.client.update(latest, subresource="status")
            raise
        await REVISION_AFTER.hit(owner=str(key_of(daemon_set)))
        return created

    async def _merge(
        self, duplicate: apps.ControllerRevision, current: apps.ControllerRevision, pods: Sequence[core.Pod]
    ) -> None:
        """Give the pods of a duplicate to the current revision, and delete the duplicate."""
        labels = {REVISION_LABEL: digest_of(current)}
        for pod in pods:
            if pod.metadata.labels.get(REVISION_LABEL) == digest_of(duplicate):
                change = {"metadata": {"labels": labels, "uid": pod.metadata.uid}}
                with ignoring(is_not_found):
                    await self.client.patch(kinds.POD, pod.metadata.name, pod.metadata.namespace, change)
        await self.delete_if_exists(duplicate)

    async def _truncate(self, daemon_set: apps.DaemonSet, history: History, pods: Sequence[core.Pod]) -> None:
        if len(history.old) > daemon_set.spec.revisionHistoryLimit:
            live = {pod.metadata.labels.get(REVISION_LABEL, "") for pod in pods}
            for each in history.to_delete(live, daemon_set.spec.revisionHistoryLimit):
                await self.delete_if_exists(each)
