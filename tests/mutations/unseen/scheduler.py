"""Mutations of the scheduler."""

from __future__ import annotations

from typing import Final

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit
from tests.mutations.unseen.unseen import Unseen

_MODULE: Final = "nominee.scheduler"
_QUEUE: Final = "nominee.scheduler.queue.scheduling_queue:PrioritySchedulingQueue"
_CLAIMS: Final = "nominee.scheduler.plugins.dynamic_resources"
_BINDING: Final = "nominee.scheduler.shell.loop.binding:BindingCycles"

SCHEDULER: Final[tuple[Unseen, ...]] = (
    Unseen(
        mutation=Mutation(
            name="event-lost-for-pods-in-flight",
            title="an event that moves no waiting pod is not kept for the pods in flight",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_QUEUE}.move_all",
                    "self._move(pods, event, old, new, now)",
                    "if pods:\n        self._move(pods, event, old, new, now)",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="room becomes free while the only pod that needs it is being tried: it waits five minutes",
        proof="tests/scheduler/queue/test_golden.py::test_sequence[in-flight/events-kept-until-oldest-done]",
    ),
    Unseen(
        mutation=Mutation(
            name="uncertain-nomination-forgotten",
            title="a status write without an answer is not kept as uncertain",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.scheduler.dispatch.call_queue:CallQueue.finish",
                    "if trigger is Trigger.UNREACHABLE and not",
                    "if trigger is Trigger.UNREACHABLE and calls.is_awaited and not",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="a nomination's answer is lost, and it is changed back before the watch shows it",
        proof=(
            "tests/scheduler/dispatch/test_call_queue.py"
            "::test_a_clearing_is_written_after_a_nomination_whose_response_was_lost"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="lost-bind-answer-counts-as-failure",
            title="a binding whose answer was lost is undone although the pod is bound",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_BINDING}._bind",
                    "if status is not None and await",
                    "if status is not None and status.is_rejected and await",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="the API server dies after it has bound a pod: PodScheduled=False is written to a bound pod",
        proof="tests/scheduler/shell/test_binding.py::test_a_binding_whose_answer_was_lost_is_a_binding",
    ),
    Unseen(
        mutation=Mutation(
            name="devices-free-after-lost-answer",
            title="the devices of an allocation whose write got no answer count as free",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_CLAIMS}.plugin:DynamicResources._bind_claim",
                    "is_settled = not is_retryable(error)",
                    "is_settled = True",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="the answer to a claim's allocation is lost, and another pod gets the same device",
        proof=(
            "tests/mutations/proofs/test_scheduler.py"
            "::test_devices_are_in_use_until_it_is_known_whether_a_write_without_an_answer_was_made"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="assumed-volume-not-held",
            title="an assumed volume counts as taken only until it is looked at again",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.scheduler.plugins.volume_binding.assumptions:Assumptions._over",
                    "if resource_version_of(found) > resource_version_of(assumed):",
                    "if resource_version_of(found) >= resource_version_of(assumed):",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="two pods whose claims suit one volume are scheduled before the first one is bound",
        proof=(
            "tests/scheduler/plugins/test_volume_binding.py"
            "::test_the_selected_node_is_set_and_provisioning_is_awaited"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="preemptor-waits-after-failed-eviction",
            title="a preemptor whose victims could not be evicted is not activated",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.scheduler.preemption.evictions:Evictions.in_background",
                    "failed = error is not None",
                    "failed = isinstance(error, FailpointError)",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="the API server refuses a victim's deletion: the preemptor waits for no event at all",
        proof=(
            "tests/scheduler/preemption/test_evictions.py"
            "::test_a_rejected_eviction_brings_the_preemptor_back_and_spares_the_last_victim"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="nomination-outlives-pod",
            title="the nomination of a deleted pod stays",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_QUEUE}.delete",
                    "self.nominator.delete(pod.metadata.uid)",
                    "if pod.spec.nodeName:\n        self.nominator.delete(pod.metadata.uid)",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="a pending pod with a nomination is deleted: its node keeps room for it",
        proof=(
            "tests/scheduler/queue/test_golden.py"
            "::test_sequence[nominated/delete-requeues-lower-or-equal-priority]"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="changed-node-missed-by-snapshot",
            title="a node that has changed is not moved to the end of the cache's list",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.scheduler.framework.cluster.cache:Cache._node",
                    "self._nodes.move_to_end(name)",
                    "pass",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="pods fill any node but the one that came last: the snapshot does not see them",
        proof="tests/scheduler/framework/test_cache.py::test_a_snapshot_costs_by_what_changed",
    ),
    Unseen(
        mutation=Mutation(
            name="bound-pod-requeued",
            title="a pod that was bound although its attempt failed is queued again",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.scheduler.failure:requeue_failed",
                    "if cached is None or (cached.spec.nodeName and not is_queued_if_bound):",
                    "if cached is None:",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="the watch shows a pod bound while its attempt fails (a lost answer, another scheduler)",
        proof=(
            "tests/mutations/proofs/test_scheduler.py::test_a_pod_that_is_bound_after_all_is_not_queued_again"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="pending-nomination-ends-early",
            title="a decided nomination gives way to any event once it is written",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.scheduler.dispatch.nominations:PendingNominations.apply",
                    "if pending.revision is not None and resource_version_of(pod) >= pending.revision:",
                    "if pending.revision is not None:",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="an older event of the pod arrives after its nomination was written: the room is given away",
        proof=(
            "tests/scheduler/dispatch/test_call_queue.py"
            "::test_one_call_is_under_way_and_the_later_ones_are_merged_into_one"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="recreated-pod-gets-old-result",
            title="the result of an attempt reaches a pod that was created again under the same name",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.scheduler.failure:is_recreated",
                    "cached.metadata.uid != pod.uid",
                    "cached.metadata.name != pod.name",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="a pod is deleted and created again by its name during its attempt, which fails",
        proof="tests/scheduler/queue/test_recreated.py::test_the_new_pod_starts_at_zero[failure0]",
    ),
    Unseen(
        mutation=Mutation(
            name="claim-reserved-twice",
            title="a reservation whose answer was lost is made again",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_CLAIMS}.claim_writes:ClaimWriter._bind_once",
                    "if is_reserved_for(current, uid):",
                    "if allocation is None and is_reserved_for(current, uid):",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="the answer to a claim's allocation is lost; the second try takes it for another writer's",
        proof=(
            "tests/mutations/proofs/test_scheduler.py"
            "::test_a_reservation_whose_answer_was_lost_is_not_made_again"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="reservation-of-freed-claim",
            title="a pod is reserved for a claim that was deallocated meanwhile",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_CLAIMS}.claim_writes:ClaimWriter._bind_once",
                    "elif not is_allocated(claim):",
                    "elif claim.metadata.finalizers and not is_allocated(claim):",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="a shared claim is freed by the controller while the scheduler reserves it for another pod",
        proof=(
            "tests/scheduler/plugins/test_claim_writes.py"
            "::test_an_allocation_that_is_freed_in_the_meantime_is_not_reserved"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="claim-assumed-over-newer-one",
            title="a claim that a write returned replaces a newer one from the watch",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_CLAIMS}.tracker:ClaimTracker.assume",
                    "if found is not None and resource_version_of(found) > resource_version_of(claim):",
                    "if found is None:",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="the watch overtakes the answer to a write: freed devices count as in use",
        proof=(
            "tests/mutations/proofs/test_scheduler.py"
            "::test_an_answer_that_the_watch_has_overtaken_is_not_assumed"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="in-memory-nomination-dropped-by-update",
            title="a nomination that is not written yet is dropped by any update of the pod",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.scheduler.framework.nominations.nominator:Nominator.update",
                    "if kept is not None:",
                    "if kept is not None and old.spec != new.pod.spec:",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="a pod's labels change between its preemption and the write of its nomination",
        proof=(
            "tests/scheduler/framework/test_nominator.py"
            "::test_a_nomination_in_memory_outlives_an_update_without_it"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="backoff-ignored-by-error",
            title="a pod that failed with an error is popped before its back-off is over",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.scheduler.queue.backoff:BackoffQueue.pop_early",
                    "return self._rejected.pop()",
                    "return self._rejected.pop() or self._errors.pop()",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="the API server is away: each pod's binding is tried without a pause",
        proof="tests/scheduler/queue/test_golden.py::test_sequence[error-backoff/growth-0]",
    ),
    Unseen(
        mutation=Mutation(
            name="flight-of-gone-pod-not-ended",
            title="a pod that was deleted during its attempt stays in flight",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.scheduler.failure:requeue_failed",
                    "queue.done(uid)\n        requeued = False",
                    "if cached is not None:\n            queue.done(uid)\n        requeued = False",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="a pod is deleted while it is tried, and does not fit: all later events are kept for it",
        proof="tests/mutations/proofs/test_scheduler.py::test_a_pod_that_is_gone_is_not_in_flight",
    ),
    Unseen(
        mutation=Mutation(
            name="rejector-index-kept",
            title="a pod that leaves the unschedulable ones stays in the index of one of its rejectors",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.scheduler.queue.unschedulable:UnschedulablePods.remove",
                    "for index in self._indexed.pop(key):",
                    "for index in sorted(self._indexed.pop(key))[1:]:",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="a pod that was unschedulable is deleted: the next event of its rejector queues it again",
        proof="tests/scheduler/queue/test_golden.py::test_sequence[random/001]",
    ),
)
