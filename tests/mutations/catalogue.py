"""The known bugs: which function is wrong, and how."""

from __future__ import annotations

from dataclasses import dataclass

from tests.mutations.patch import Edit


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """A known bug. `module` is the program that has it, as in `python -m MODULE`."""

    name: str
    title: str
    module: str
    edits: tuple[Edit, ...]


_BINDING = "nominee.apiserver.registry.pods.binding"
_WORKER = "nominee.kubelet.shell.pod_worker:PodWorker"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        name="bind-without-precondition",
        title="the API server binds a pod that is bound already",
        module="nominee.apiserver",
        edits=(Edit(f"{_BINDING}:_refusal", "if pod.spec.nodeName:", "if False:"),),
    ),
    Mutation(
        name="nomination-not-cleared",
        title="the API server does not clear nominatedNodeName when it binds",
        module="nominee.apiserver",
        edits=(
            Edit(
                f"{_BINDING}:bind",
                'env.gates.enabled("ClearingNominatedNodeNameAfterBinding")',
                "False",
            ),
        ),
    ),
    Mutation(
        name="assumed-pod-not-forgotten",
        title="the scheduler's cache keeps an assumed pod whose binding failed",
        module="nominee.scheduler",
        edits=(
            Edit(
                "nominee.scheduler.shell.loop.binding:BindingCycles._unreserve",
                "deps.cache.forget_pod(pod)",
                "pass",
            ),
        ),
    ),
    Mutation(
        name="checkpoint-after-actuation",
        title="the kubelet actuates and reports before it has saved its checkpoint",
        module="nominee.kubelet",
        edits=(
            Edit(
                f"{_WORKER}._perform",
                "saved = await agent.checkpointer.save_allocations(version)",
                "saved = version",
            ),
            Edit(f"{_WORKER}._make_call", "await agent.checkpointer.save()", "pass"),
            Edit(f"{_WORKER}._patch", "await agent.checkpointer.save()\n", "pass\n"),
            Edit(
                f"{_WORKER}.work",
                "if isinstance(done, PatchStatus)",
                "if isinstance(done, PatchStatus):\n"
                "                await agent.checkpointer.save()\n"
                "            if isinstance(done, PatchStatus)",
            ),
        ),
    ),
    Mutation(
        name="victim-chosen-twice",
        title="a preemptor does not wait for its victims, and chooses victims again",
        module="nominee.scheduler",
        edits=(
            Edit(
                "nominee.scheduler.preemption.eligibility:why_not_eligible",
                "if other.priority < pod.priority and is_terminating_by_preemption(other.pod):",
                "if False:",
            ),
        ),
    ),
    Mutation(
        name="watch-resumed-late",
        title="a watch that is resumed skips one revision",
        module="nominee.scheduler",
        edits=(
            Edit(
                "nominee.machinery.client.watches.reflector:Reflector._watch_once",
                "resource_version=self.resource_version,",
                "resource_version=str(int(self.resource_version) + bool(self.watches)),",
            ),
        ),
    ),
    Mutation(
        name="autoscaler-ignores-nominations",
        title="the autoscaler does not count nominated pods on their nodes",
        module="nominee.autoscaler",
        edits=(
            Edit(
                "nominee.autoscaler.planning.objects.pods:arrange_by_schedulability",
                "pod.status.nominatedNodeName and options.compat is not Compat.V1_35",
                "False",
            ),
            Edit(
                "nominee.autoscaler.actuation.recheck:recheck",
                "(nominated := _nominated_pod(options, fresh, node))",
                '(nominated := "")',
            ),
        ),
    ),
    Mutation(
        name="budget-ignored-in-second-pass",
        title="preemption reprieves pods without a budget before those whose budget it would violate",
        module="nominee.scheduler",
        edits=(
            Edit(
                "nominee.scheduler.preemption.dry_runs.dry_run:_not_reprieved",
                "for first in (True, False):",
                "for first in (False, True):",
            ),
            Edit(
                "nominee.scheduler.preemption.dry_runs.column_dry_run:ColumnDryRun._spare_budgets",
                "np.argsort(violating == 0",
                "np.argsort(violating != 0",
            ),
        ),
    ),
    Mutation(
        name="resize-counted-twice",
        title="the scheduler adds desired and allocated resources while a resize is in progress",
        module="nominee.scheduler",
        edits=(
            Edit(
                "nominee.machinery.resources.pod_resources:_container_requests",
                "_raise_to(effective, _read(status.allocatedResources))",
                "actual = _read(status.resources.requests)\n"
                "    (_raise_to if actual == desired else _add)(effective, _read(status.allocatedResources))",
            ),
        ),
    ),
    Mutation(
        name="lease-taken-too-early",
        title="a candidate takes the lease over before it has run out",
        module="nominee.scheduler",
        edits=(
            Edit(
                "nominee.machinery.client.leader_election:LeaderElector._acquire",
                "self._observed_at >= duration",
                "self._observed_at >= duration / 8",
            ),
        ),
    ),
    Mutation(
        name="cache-updated-after-queue",
        title="the scheduler requeues pods for a deleted pod before its cache has freed the room",
        module="nominee.scheduler",
        edits=(
            Edit(
                "nominee.scheduler.event_handlers:EventHandlers._assigned_pod_deleted",
                "with self._reporting():\n        self._cache.remove_pod(self._pod_info(pod))",
                "import asyncio\n"
                "    asyncio.get_running_loop().call_later(0.2, self._cache.remove_pod, self._pod_info(pod))",
            ),
        ),
    ),
    Mutation(
        name="own-write-check-skips-deletion",
        title="the EndpointSlice controller takes the deletion of a slice that it wrote for its own",
        module="nominee.controllers",
        edits=(
            Edit(
                "nominee.controllers.endpoints.shell.own_slices:OwnSlices._gone",
                "not self._pending.is_own_deletion(_service_of(found), found)",
                "not self._is_own(found)",
            ),
        ),
    ),
    Mutation(
        name="pod-removed-by-name",
        title="the kubelet removes the pod of a name, and not just the one that has stopped",
        module="nominee.kubelet",
        edits=(Edit(f"{_WORKER}._delete", "grace_period_seconds=0, uid=uid", "grace_period_seconds=0"),),
    ),
)
BY_NAME = {mutation.name: mutation for mutation in MUTATIONS}
