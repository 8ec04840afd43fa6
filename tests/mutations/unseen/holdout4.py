"""Mutations that are kept apart: the fourth set, by an author who did not know what the lab checks."""

from __future__ import annotations

from typing import Final

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit
from tests.mutations.unseen.unseen import Unseen

_PROOFS: Final = "tests/mutations/proofs/test_holdout4.py"
_APISERVER: Final = "nominee.apiserver"
_AUTOSCALER: Final = "nominee.autoscaler"
_CONTROLLERS: Final = "nominee.controllers"
_KUBELET: Final = "nominee.kubelet"
_SCHEDULER: Final = "nominee.scheduler"

HOLDOUT4: Final[tuple[Unseen, ...]] = (
    # --- scheduler ---
    Unseen(
        mutation=Mutation(
            name="equal-waits-after-deleted-preemptor",
            title="the end of a nomination wakes pods of lower priority only, and none of the same one",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.event_handlers:EventHandlers._nomination_gone",
                    "info.priority <= priority",
                    "info.priority < priority",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="a preemptor that waits for its victims is deleted, or nominated elsewhere, and a pod of the"
        " same priority waits for the room that was kept for it: it stays Pending beside a free node, for up"
        " to five minutes",
        proof=f"{_PROOFS}::test_the_end_of_a_nomination_wakes_pods_of_the_same_priority",
    ),
    Unseen(
        mutation=Mutation(
            name="shared-allocation-ended-by-one-of-the-gang",
            title="devices that a gang shares are free as soon as one of its pods gives its attempt up",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.plugins.dynamic_resources.tracker:ClaimTracker.give_up",
                    "return not flight.holders and self.land(uid)",
                    "return self.land(uid)",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="two pods of a gang share a claim that is not written yet, and the binding of one of them"
        " fails while the other's goes on: another claim gets the same devices, and is refused or, where the"
        " second write comes first, two claims have one device",
        proof=f"{_PROOFS}::test_devices_stay_taken_while_one_of_the_gang_is_to_write_them",
    ),
    Unseen(
        mutation=Mutation(
            name="last-listed-generation-of-pool-counts",
            title="of two generations of a device pool the one counts whose slices come last by name",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.plugins.dynamic_resources.device_allocation.pools:gather_pools",
                    "if found and slice_.generation > found[0].generation:",
                    "if found and slice_.generation != found[0].generation:",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="a driver publishes a new generation of its pool, and dies, or is slow, before it removes the"
        " old slices: pods get devices that the driver does not have any more, or wait for those that it has",
        proof=f"{_PROOFS}::test_the_newest_generation_of_a_pool_counts_whatever_its_name",
    ),
    # --- kubelet ---
    Unseen(
        mutation=Mutation(
            name="critical-pod-preempts-its-equals",
            title="a pod that finds no room on its node preempts pods of its own priority, too",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.allocation.preemption:may_preempt",
                    "return preemptor.priority > victim.priority",
                    "return preemptor.priority >= victim.priority",
                ),
            ),
        ),
        component="kubelet",
        disturbed=False,
        reached="two critical pods of one priority name a node that has room for one of them: the second one"
        " kills the first, whose controller makes it again, and so on, instead of failing with OutOfcpu",
        proof=f"{_PROOFS}::test_a_critical_pod_does_not_preempt_an_equal_one",
    ),
    Unseen(
        mutation=Mutation(
            name="removed-pods-block-those-added",
            title="pods that come in the same message as the end of others are admitted beside those",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.sync_loop:_on_pods_observed",
                    "for uid, pod in event.changes:",
                    "for uid, pod in sorted(event.changes, key=lambda change: change[1] is None):",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="the kubelet's watch is delayed, or its messages are merged: a pod of a full node is deleted"
        " without grace, and the one that the scheduler has bound in its place is rejected (OutOfcpu)",
        proof="tests/kubelet/test_event_order.py"
        "::test_a_pod_that_leaves_gives_its_room_to_those_that_come_after_it[first]",
    ),
    # --- autoscaler ---
    Unseen(
        mutation=Mutation(
            name="simulated-removal-costs-no-budget",
            title="the pods of one removed node take nothing of the budgets that the next one needs",
            module=_AUTOSCALER,
            edits=(
                Edit(
                    "nominee.autoscaler.planning.scale_down.removal_simulator:RemovalSimulator.simulate",
                    "        budgets.remove(to_move.pods)\n",
                    "",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=False,
        reached="two unneeded nodes have pods of one PodDisruptionBudget that allows one disruption: both are"
        " tainted and drained at once; the evictions of the second one are refused for two minutes, its other"
        " pods are evicted in vain, and its deletion fails",
        proof=f"{_PROOFS}::test_a_simulated_removal_counts_in_the_budgets",
    ),
    Unseen(
        mutation=Mutation(
            name="failed-instance-counted-in-each-loop",
            title="an instance that could not be created is taken for a new failure in every loop",
            module=_AUTOSCALER,
            edits=(
                Edit(
                    "nominee.autoscaler.planning.node_groups.cluster_state:"
                    "ClusterStateRegistry._handle_creation_errors",
                    "self._errors_seen[group.id] = set(failed)",
                    "self._errors_seen.setdefault(group.id, set(failed))",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="one of three requested instances fails, and the provider does not answer its deletion: after"
        " three loops the whole request counts as failed, the two nodes that come are not waited for any"
        " more, and the pods that they are for have another group grow",
        proof=f"{_PROOFS}::test_an_instance_fails_once",
    ),
    # --- controllers ---
    Unseen(
        mutation=Mutation(
            name="available-only-once-all-wait",
            title="a ReplicaSet looks again after minReadySeconds only if none of its pods is available yet",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.replica_sets.replicas:recheck_seconds",
                    "if not waiting:",
                    "if not waiting or len(waiting) < len(pods):",
                ),
            ),
        ),
        component="controllers",
        disturbed=False,
        reached="a Deployment has minReadySeconds, and its pods become ready one after the other: the second"
        " one never counts as available, and the rollout stops there",
        proof=f"{_PROOFS}::test_each_ready_pod_becomes_available_by_time",
    ),
    Unseen(
        mutation=Mutation(
            name="counted-pod-entered-again",
            title="a pod that succeeded is entered into a Job's status again while it has its finalizer",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.jobs.sync:JobSync.count",
                    "elif uid not in self._counted:",
                    "else:",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the controllers are killed, or a call fails, after a Job's status has a succeeded pod and"
        " before the pod's finalizer is removed: the status has its uid twice, every write is refused, and"
        " the Job, whose pods have ended, never completes",
        proof=f"{_PROOFS}::test_a_pod_that_the_status_has_is_not_entered_again",
    ),
    Unseen(
        mutation=Mutation(
            name="forgotten-eviction-blocks-budget",
            title="a budget is not looked at again when an eviction that it allowed has not happened",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.disruption.shell.disruption:Disruption.reconcile",
                    "return recheck_seconds(status, now.seconds)",
                    "return None",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the API server is killed between the writes of the budget and of the pod's condition, and"
        " no client tries again: the pod runs, but never counts as healthy any more; the budget refuses all"
        " further evictions, until one of its pods happens to change",
        proof=f"{_PROOFS}::test_a_budget_is_looked_at_again_after_an_eviction",
    ),
    # --- apiserver ---
    Unseen(
        mutation=Mutation(
            name="conflicting-eviction-keeps-old-budget",
            title="an eviction that meets a changed budget tries again with the budget that it had",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.registry.pods.eviction:EvictionRequest._ask_budget",
                    "newest = None",
                    "newest = current",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="two pods of a budget that allows two disruptions are evicted at the same time, or its status"
        " is written meanwhile: one eviction fails with 409 after ten seconds, which ends a kubectl drain,"
        " instead of succeeding in the next attempt",
        proof=f"{_PROOFS}::test_an_eviction_reads_a_changed_budget_again",
    ),
    Unseen(
        mutation=Mutation(
            name="pod-moves-into-quota-for-free",
            title="a pod that comes under a quota by an update is charged only what it has grown by",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.admission.resource_quota:_charges",
                    "(bound, increase if quota.counts(bound, request.kind, request.old) else used)",
                    "(bound, increase)",
                ),
            ),
        ),
        component="apiserver",
        disturbed=False,
        reached="a namespace has a quota of the scope Terminating that is used up, and a user sets"
        " activeDeadlineSeconds of a pod that runs: the update is admitted, and the quota is exceeded",
        proof=f"{_PROOFS}::test_a_pod_that_moves_into_a_quota_is_charged",
    ),
    Unseen(
        mutation=Mutation(
            name="resize-keeps-generation",
            title="a resize leaves metadata.generation as it was",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.kinds.core.pods.resize:PodResizeStrategy.prepare_for_update",
                    "    bump_generation(new, old)\n",
                    "",
                ),
            ),
        ),
        component="apiserver",
        disturbed=False,
        reached="a user resizes a running pod: generation and the observedGeneration of its status and"
        " conditions stay, so that no client can tell whether the resize was seen; and one beyond the node's"
        " allocatable is admitted, since only a changed generation is checked",
        proof=f"{_PROOFS}::test_a_resize_is_a_new_generation",
    ),
    # --- machinery ---
    Unseen(
        mutation=Mutation(
            name="claim-for-all-devices-uncharged",
            title="a claim for all devices of a class uses nothing of a quota for them",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.machinery.resources.quota:_devices",
                    'number = _DEVICES_OF_ALL if each.allocationMode == "All" else each.count',
                    "number = each.count",
                ),
            ),
        ),
        component="machinery",
        disturbed=False,
        reached="a namespace may have two devices of a class, and a user makes a ResourceClaim with the"
        " allocationMode All: it is admitted, charged with none, and gets every device of its node",
        proof=f"{_PROOFS}::test_a_claim_for_all_devices_uses_the_quota",
    ),
)
