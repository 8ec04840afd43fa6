"""Mutations that are kept apart: the seventh set, of API server, controllers and autoscaler.

Its author did not know what the lab checks.
"""

from __future__ import annotations

from typing import Final

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit
from tests.mutations.unseen.unseen import Unseen

_PROOFS: Final = "tests/mutations/proofs/test_holdout7.py"
_APISERVER: Final = "nominee.apiserver"
_AUTOSCALER: Final = "nominee.autoscaler"
_CONTROLLERS: Final = "nominee.controllers"

HOLDOUT7: Final[tuple[Unseen, ...]] = (
    # --- apiserver ---
    Unseen(
        mutation=Mutation(
            name="starting-pod-deleted-without-grace",
            title="a pod that has a node and does not run yet is deleted without a grace period",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.kinds.core.pods.strategy:PodStrategy.check_graceful_delete",
                    'obj.status.phase in ("Failed", "Succeeded")',
                    'obj.status.phase != "Running"',
                ),
            ),
        ),
        component="apiserver",
        disturbed=False,
        reached="a pod is deleted between its binding and its start, as in a rollout that is changed again"
        " at once: it is gone while its kubelet starts its containers, and the next pod gets its room",
        proof=f"{_PROOFS}::test_a_pod_that_starts_has_its_grace_period",
    ),
    Unseen(
        mutation=Mutation(
            name="absent-from-cache-is-absent",
            title="what admission looks up and the watch cache lacks does not exist",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.registry.store:Store.find",
                    "return cached if cached is not None else",
                    "return cached if self._snapshot is not None else",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="the watch cache is behind etcd, and a client creates a service account or a runtime class"
        " and at once a pod that needs it, or the pod at another API server than its namespace: the pod is"
        " refused (403 or 404)",
        proof=f"{_PROOFS}::test_an_object_that_the_cache_lacks_is_looked_up_in_etcd",
    ),
    Unseen(
        mutation=Mutation(
            name="leaving-selection-shows-no-deletion",
            title="a watch with a selector does not end objects that it does not select any more",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.cache.kind_cache:Transition.event",
                    "return self._view(EventType.DELETED, convert) if before else None",
                    "return self._view(EventType.DELETED, convert) if before and not self.current else None",
                ),
            ),
        ),
        component="apiserver",
        disturbed=False,
        reached="the pods of a Job complete and are kept: the autoscaler, which watches pods that have not"
        " completed, has them as running for ever, and keeps their nodes",
        proof=f"{_PROOFS}::test_an_object_that_leaves_a_selection_is_deleted_for_its_watcher",
    ),
    Unseen(
        mutation=Mutation(
            name="repeated-deletion-takes-successor",
            title="a deletion whose answer was lost deletes the object that has the name by then",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.storage.etcd_storage:EtcdStorage.delete",
                    "if uncertain and (current is None or _created_at(answer) > former):",
                    "if uncertain and current is None:",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="a user deletes a pod of a StatefulSet by force, and etcd's answer is lost after it has"
        " applied that; the controller has created the next pod of the name when the API server tries again:"
        " the new pod is removed, too, by no request",
        proof=f"{_PROOFS}::test_a_repeated_deletion_spares_an_object_that_was_created_since",
    ),
    # --- controllers ---
    Unseen(
        mutation=Mutation(
            name="claims-of-shifted-ordinals-go",
            title="a StatefulSet whose ordinals start later takes its last pods for scaled down",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.stateful_sets.retention:_owners",
                    "ordinal_of(pod) not in ordinals(of)",
                    "ordinal_of(pod) >= of.spec.replicas",
                ),
            ),
        ),
        component="controllers",
        disturbed=False,
        reached="a StatefulSet has spec.ordinals.start and whenScaled: Delete: its pods own their claims,"
        " and a rolling update, or the deletion of one pod, deletes the claim and its data",
        proof=f"{_PROOFS}::test_pods_within_shifted_ordinals_do_not_own_their_claims",
    ),
    Unseen(
        mutation=Mutation(
            name="broken-daemons-count-as-available",
            title="the rolling update of a DaemonSet goes on past new pods that are not available",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.daemon_sets.rolling_update:_delete_first",
                    "elif len(new) != 1 or old or not at.available(new[0]):",
                    "elif len(new) != 1 or old:",
                ),
            ),
        ),
        component="controllers",
        disturbed=False,
        reached="a DaemonSet gets an image that never becomes ready, or has minReadySeconds: its pods are"
        " replaced on all nodes, whatever maxUnavailable is",
        proof=f"{_PROOFS}::test_a_rolling_update_waits_for_new_daemons",
    ),
    Unseen(
        mutation=Mutation(
            name="ended-pods-counted-again-after-crash",
            title="pods that a Job's status has already, and whose finalizers are left, count again",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.jobs.sync:JobSync._newly_ended",
                    "valid = [pod for pod in self._tracked if pod.metadata.uid not in self._counted]",
                    "valid = list(self._tracked)",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the controllers die after the status of a Job names an ended pod and before its finalizer"
        " is removed: the Job completes one pod short, or fails below its backoffLimit",
        proof=f"{_PROOFS}::test_a_pod_that_the_status_names_counts_once",
    ),
    Unseen(
        mutation=Mutation(
            name="disruption-marked-in-the-cache",
            title="the condition of a pod to be evicted is set in the informer's object",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.shell.disruption_target:disrupt",
                    "marked = copy_of(pod)",
                    "marked = pod",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the API server refuses the status with DisruptionTarget when a taint evicts a pod: the next"
        " attempt takes it for written and deletes the pod without it, so that a Job counts a failure that"
        " its podFailurePolicy ignores",
        proof=f"{_PROOFS}::test_a_condition_that_was_refused_is_written_again",
    ),
    Unseen(
        mutation=Mutation(
            name="deadline-runs-from-first-progress",
            title="further progress of a rollout does not renew its deadline",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.deployments.progress:_judge_progress",
                    "            # Renewed even if it is equal: the deadline runs from lastUpdateTime.\n"
                    "            remove_condition(status.conditions, PROGRESSING)\n",
                    "",
                ),
            ),
        ),
        component="controllers",
        disturbed=False,
        reached="the pods of a rollout become ready one after the other, each within"
        " progressDeadlineSeconds and all of them not: the Deployment says ProgressDeadlineExceeded",
        proof=f"{_PROOFS}::test_each_progress_of_a_rollout_renews_its_deadline",
    ),
    # --- autoscaler ---
    Unseen(
        mutation=Mutation(
            name="registered-node-has-arrived",
            title="a scale-up counts as fulfilled when its nodes register, though they are not ready",
            module=_AUTOSCALER,
            edits=(
                Edit(
                    "nominee.autoscaler.planning.node_groups.cluster_state:ClusterStateRegistry._has_upcoming",
                    "len(row.registered) - len(row.not_started)",
                    "len(row.registered)",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=False,
        reached="the nodes of a group register with a startup taint, or become ready some loops later: the"
        " pod that waits for the new node gets a second one",
        proof=f"{_PROOFS}::test_a_node_that_has_not_started_is_still_upcoming",
    ),
    Unseen(
        mutation=Mutation(
            name="decreased-target-not-saved",
            title="the cloud does not save that a group's target size was decreased",
            module="nominee.autoscaler.cloud",
            edits=(
                Edit(
                    "nominee.autoscaler.cloud.servicer:CloudServicer.NodeGroupDecreaseTargetSize",
                    "        self._changed()\n",
                    "",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="a scale-up times out and is reverted, and the cloud is killed before anything else changes"
        " there: it has the former target and the cancelled instance again, which becomes a node in the end",
        proof=f"{_PROOFS}::test_a_decreased_target_survives_a_restart_of_the_cloud",
    ),
    Unseen(
        mutation=Mutation(
            name="deletions-newer-than-sizes",
            title="a loop looks at the deletions in progress as they are after it has read the sizes",
            module=_AUTOSCALER,
            edits=(
                Edit(
                    "nominee.autoscaler.steps.cluster.refresh:refresh",
                    "deletions = state.deletions.snapshot()",
                    "deletions = state.deletions",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="the deletion of a node ends while a loop waits for the provider or the API server, after"
        " it has read the target sizes: the size with the deleted node counts, and one more node is deleted,"
        " below the minimum of the group",
        proof=f"{_PROOFS}::test_a_deletion_that_ends_during_a_loop_is_in_progress_for_it",
    ),
)
