"""Mutations that are kept apart: they were written when the lab had been tuned for others."""

from __future__ import annotations

from typing import Final

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit
from tests.mutations.unseen.unseen import Unseen

_PROOFS: Final = "tests/mutations/proofs/test_holdout.py"
_APISERVER: Final = "nominee.apiserver"
_AUTOSCALER: Final = "nominee.autoscaler"
_CONTROLLERS: Final = "nominee.controllers"
_KUBELET: Final = "nominee.kubelet"
_SCHEDULER: Final = "nominee.scheduler"
_QUEUE: Final = "nominee.scheduler.queue.scheduling_queue:PrioritySchedulingQueue"

HOLDOUT: Final[tuple[Unseen, ...]] = (
    # --- scheduler ---
    Unseen(
        mutation=Mutation(
            name="nomination-missed-in-backoff",
            title="a nomination that changes while its pod is in back-off is not followed",
            module=_SCHEDULER,
            edits=(
                Edit(
                    f"{_QUEUE}.update",
                    "self._backoff.reorder(info)\n        self.nominator.update(old, new)",
                    "self._backoff.reorder(info)",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="another client nominates a pod that is in back-off: its room is given to other pods",
        proof=f"{_PROOFS}::test_a_nomination_is_followed_while_the_pod_is_in_back_off",
    ),
    Unseen(
        mutation=Mutation(
            name="equal-nominations-not-in-column-dry-run",
            title="the dry run over columns gives the room of equally important nominated pods away",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.preemption.dry_runs.column_dry_run:ColumnDryRun._emptied",
                    "if o.priority >= pod.priority and o.uid != pod.uid",
                    "if o.priority > pod.priority and o.uid != pod.uid",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="two pods of one priority preempt while victims end slowly: both are nominated to one node",
        proof=f"{_PROOFS}::test_room_that_is_kept_for_an_equal_pod_is_not_won_by_preemption",
    ),
    Unseen(
        mutation=Mutation(
            name="first-change-alone-requeues",
            title="of an update that changes several things only the first can requeue its waiting pod",
            module=_SCHEDULER,
            edits=(
                Edit(
                    f"{_QUEUE}.update",
                    "if self._requeue(info, strategy, event, now):\n            break",
                    "self._requeue(info, strategy, event, now)\n        break",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="one update labels a pod and removes its scheduling gates: the pod stays gated",
        proof=f"{_PROOFS}::test_each_change_of_an_update_may_requeue_the_pod",
    ),
    Unseen(
        mutation=Mutation(
            name="failed-binding-frees-no-node",
            title="the room of a failed binding is announced without its node",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.shell.loop.binding:BindingCycles._announce_room",
                    "freed = assigned_copy(attempt.pod.pod, attempt.node_name)",
                    "freed = attempt.pod.pod",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="PreBind or Bind fails while another pod waits for the room: it waits for five minutes",
        proof=f"{_PROOFS}::test_the_room_of_a_failed_binding_is_that_of_its_node",
    ),
    Unseen(
        mutation=Mutation(
            name="selected-node-stays-assumed",
            title="the node that was assumed for a claim stays assumed when the pod is sent back",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.plugins.volume_binding.binder:VolumeBinder.revert",
                    "self.claims.restore(claim.metadata.name, claim.metadata.namespace)",
                    "self.claims.restore(claim.metadata.name)",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="a pod with an unbound claim fails after Reserve, and its node goes: it is pending for ever",
        proof=("tests/scheduler/plugins/test_volume_binding.py::test_unreserve_takes_the_assumption_back"),
    ),
    Unseen(
        mutation=Mutation(
            name="freed-devices-requeue-no-other-pod",
            title="a claim that is deallocated requeues only pods that use this claim",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.plugins.dynamic_resources.hints:Hints.after_claim_change",
                    "if not event.freed and (event.name not in pod.resource_claims"
                    " or event.namespace != pod.namespace):",
                    "if event.name not in pod.resource_claims or event.namespace != pod.namespace:",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="a pod waits for a device that another pod's claim has, and that pod ends: it waits on",
        proof=f"{_PROOFS}::test_devices_that_are_freed_matter_to_pods_with_other_claims",
    ),
    # --- kubelet ---
    Unseen(
        mutation=Mutation(
            name="share-counted-by-spec-only",
            title="what a pod counts for on its node is counted again only when its spec changes",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.allocation.manager:_take",
                    "record.pod, record.desired, record.share = pod, node.desired_of(pod), None",
                    "desired = node.desired_of(pod)\n"
                    "    if not desired.same(record.desired):\n"
                    "        record.share = None\n"
                    "    record.pod, record.desired = pod, desired",
                ),
            ),
        ),
        component="kubelet",
        disturbed=False,
        reached="a pod is shrunk while another's resize is deferred: that one stays deferred",
        proof=f"{_PROOFS}::test_room_that_an_actuated_decrease_frees_is_given_to_a_deferred_resize",
    ),
    Unseen(
        mutation=Mutation(
            name="preempted-pod-failed-before-it-stopped",
            title="a pod that the kubelet preempts is Failed while its containers are still stopping",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.status.pod_status:build",
                    "if sandbox is not None and sandbox.running and not view.terminal:",
                    "preempted = view.outcome is not None and view.outcome.preempted\n"
                    "    if sandbox is not None and sandbox.running and not view.terminal and not preempted:",
                ),
            ),
        ),
        component="kubelet",
        disturbed=False,
        reached="a critical pod preempts one with a grace period: its room is given away while it runs",
        proof=(
            "tests/kubelet/test_sync.py"
            "::test_a_preempted_pod_frees_its_room_at_once_and_is_failed_once_it_has_stopped"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="ended-pods-not-synced-after-restart",
            title="a restarted kubelet does not look at pods that have ended",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.sync_loop:_on_pods_listed",
                    "for uid in known]",
                    "for uid in known if node.pods[uid].active]",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="the kubelet dies between a deleted pod's last status and its removal: it stays Terminating",
        proof=f"{_PROOFS}::test_a_new_process_removes_a_deleted_pod_that_has_ended",
    ),
    Unseen(
        mutation=Mutation(
            name="instance-run-is-tried-once",
            title="an instance of the cloud whose node could not be run is not tried again",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.shell.cloud:CloudWatcher.poll",
                    "else:\n            self.known.add(new)",
                    "finally:\n            self.known.add(new)",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="the API server refuses a new instance's node, or is away for minutes: the node never joins",
        proof=f"{_PROOFS}::test_an_instance_whose_node_could_not_be_run_is_tried_again",
    ),
    # --- API server ---
    Unseen(
        mutation=Mutation(
            name="continued-list-from-cache-behind",
            title="a list is continued from a watch cache that has not reached the list's revision",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.cache.reads:Reads._exactly",
                    "if cache.last_change <= revision <= self._cache.revision:",
                    "if cache.last_change <= revision:",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="the etcd watch lags, or another API server gave the first page: later pages lack objects",
        proof=f"{_PROOFS}::test_a_list_is_not_continued_from_a_cache_that_is_behind",
    ),
    Unseen(
        mutation=Mutation(
            name="unready-pod-not-evicted-at-desired",
            title="a budget protects unready pods when just as many pods are healthy as it desires",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.registry.pods.budget:spares_unready",
                    "return status.currentHealthy >= status.desiredHealthy > 0",
                    "return status.currentHealthy > status.desiredHealthy > 0",
                ),
            ),
        ),
        component="apiserver",
        disturbed=False,
        reached="a node with an unready pod is drained while the budget allows no disruption: it never ends",
        proof=f"{_PROOFS}::test_an_unready_pod_costs_no_disruption_at_the_desired_number",
    ),
    Unseen(
        mutation=Mutation(
            name="deletion-preconditions-checked-once",
            title="a deletion that meets another write does not check its preconditions again",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.registry.store:Store.delete",
                    "for _ in range(UPDATE_ATTEMPTS_MAX):\n        preconditions.check(kind, current)",
                    "preconditions.check(kind, current)\n    for _ in range(UPDATE_ATTEMPTS_MAX):",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="a pod is removed and made again before a removal's transaction: the new pod is removed",
        proof=f"{_PROOFS}::test_a_deletion_by_uid_does_not_hit_an_object_that_was_made_meanwhile",
    ),
    Unseen(
        mutation=Mutation(
            name="last-finalizer-ends-grace-period",
            title="an object goes with its last finalizer, whatever is left of its grace period",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.kinds.strategy:Strategy.deleted_by_update",
                    "and before.deletionGracePeriodSeconds == 0",
                    "and (before.deletionGracePeriodSeconds == 0 or bool(before.finalizers))",
                ),
            ),
        ),
        component="apiserver",
        disturbed=False,
        reached="the last finalizer of a running pod is removed while it terminates: the pod is gone at once",
        proof=f"{_PROOFS}::test_a_pod_keeps_its_grace_period_when_its_last_finalizer_goes",
    ),
    # --- controllers ---
    Unseen(
        mutation=Mutation(
            name="job-trusts-old-pods",
            title="a Job is reconciled although the watch does not show the release of its pods yet",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.jobs.shell.jobs:JobController._is_behind",
                    "resource_version_of(job) < of_job"
                    " or resource_version_number(self.pods.resource_version) < of_pods",
                    "resource_version_of(job) < of_job",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the watch of pods lags behind that of Jobs: a pod that succeeded is counted twice",
        proof=f"{_PROOFS}::test_a_pod_of_a_job_is_counted_once_while_the_watch_of_pods_lags",
    ),
    Unseen(
        mutation=Mutation(
            name="created-job-not-taken-over",
            title="a CronJob's Job that exists already is not entered into its status",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.cron_jobs.shell.cron_jobs:CronJobController._create",
                    "live = await self._live(job.metadata)\n"
                    "            return live if live is not None"
                    " and is_controlled_by(live, cron_job) else None",
                    "return None",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the controllers die after a Job was created: with Forbid the next one runs beside it",
        proof=f"{_PROOFS}::test_a_job_that_was_created_before_is_entered_into_the_status",
    ),
    Unseen(
        mutation=Mutation(
            name="recreated-daemon-set-keeps-rules",
            title="a DaemonSet that was created again is placed by the template of the earlier one",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.daemon_sets.shell.daemon_sets:DaemonSetController._spec",
                    "(spec.uid, spec.failures.generation) != (metadata.uid, metadata.generation)",
                    "spec.failures.generation != metadata.generation",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="kubectl replace --force while the watch lags: pods go to the nodes of the old selector",
        proof=f"{_PROOFS}::test_a_daemon_set_that_was_created_again_has_its_own_rules",
    ),
    Unseen(
        mutation=Mutation(
            name="no-recommendation-before-the-first",
            title="an autoscaler without a history scales down without waiting for its window",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.horizontal_pod_autoscalers.autoscaling:decide",
                    "if not history.recommendations:\n"
                    "        history.recommendations.append(Sample(current, sync.now))\n"
                    "    status.currentReplicas = current",
                    "status.currentReplicas = current",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the controllers restart while an autoscaled workload has little load: it shrinks at once",
        proof=(
            "tests/controllers/horizontal_pod_autoscalers/test_autoscaling.py"
            "::test_the_first_sync_does_not_scale_down"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="outage-counts-as-silence",
            title="the time without an API server counts as the silence of all kubelets",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.nodes.shell.lifecycle:NodeLifecycle._is_silent",
                    "self._health[node.metadata.uid] = replace(health, changed_at=now.monotonic)\n"
                    "            raise",
                    "raise",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the API server is away for longer than the grace period: all nodes become Unknown",
        proof=(
            "tests/controllers/nodes/test_lifecycle.py::test_nodes_stay_ready_while_the_api_server_is_down"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="released-dependent-wakes-no-owner",
            title="an owner that waits is not looked at again when its dependent drops the reference to it",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.garbage.shell.collector:GarbageCollector._updated",
                    "self._queue_waiting_owners(old)",
                    "self._queue_waiting_owners(new)",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="a foreground deletion waits for a last dependent, which loses its owner: it never ends",
        proof=f"{_PROOFS}::test_an_owner_that_waits_is_queued_when_its_dependent_lets_it_go",
    ),
    # --- autoscaler ---
    Unseen(
        mutation=Mutation(
            name="second-increase-has-no-own-time",
            title="the nodes of a second increase must come in what is left of the first one's time",
            module=_AUTOSCALER,
            edits=(
                Edit(
                    "nominee.autoscaler.planning.node_groups.scale_up_requests:ScaleUpRequests._apply",
                    "expected_by = what.now + self._provision_time",
                    "expected_by = what.now + self._provision_time if former is None else former.expected_by",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="a group grows again while its nodes are late: the increase is reverted, the group backs off",
        proof=(
            "tests/autoscaler/test_scale_up_requests.py"
            "::test_an_increase_starts_the_request_again_and_a_failure_does_not"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="unremovable-for-ever",
            title="a node that could not be removed once is not simulated again",
            module=_AUTOSCALER,
            edits=(
                Edit(
                    "nominee.autoscaler.planning.scale_down.unremovable:UnremovableNodes.update",
                    "if name in nodes and until > now",
                    "if name in nodes",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=False,
        reached="a pod blocks the removal of a node and goes later: the node is empty and stays",
        proof=f"{_PROOFS}::test_a_node_is_simulated_again_when_its_time_is_over",
    ),
    # --- machinery ---
    Unseen(
        mutation=Mutation(
            name="leader-keeps-lease-of-lost-answer",
            title="a leader whose renewal is a conflict does not read its lease again",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.machinery.client.leader_election:LeaderElector._acquire",
                    "with ignoring(is_conflict, is_not_found):",
                    "with ignoring(is_not_found):",
                ),
            ),
        ),
        component="machinery",
        disturbed=True,
        reached="with several schedulers the answer to a renewal is lost: the leader gives up and restarts",
        proof=f"{_PROOFS}::test_a_leader_renews_after_a_renewal_whose_answer_was_lost",
    ),
    Unseen(
        mutation=Mutation(
            name="client-stays-with-dead-server",
            title="with several API servers a client goes back to the one that does not answer",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.machinery.client.api_client:Client._follow",
                    "place = addresses.index(self.address) + 1 if self.address in addresses else 0",
                    "place = addresses.index(self.address) if self.address in addresses else 0",
                ),
            ),
        ),
        component="machinery",
        disturbed=True,
        reached="one of two API servers hangs or is cut off: its clients never turn to the other one",
        proof=f"{_PROOFS}::test_a_client_turns_to_the_next_server",
    ),
)
