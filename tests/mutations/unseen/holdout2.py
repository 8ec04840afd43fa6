"""Mutations that are kept apart: the second set, by an author who did not know how the lab is tuned."""

from __future__ import annotations

from typing import Final

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit
from tests.mutations.unseen.unseen import Unseen

_PROOFS: Final = "tests/mutations/proofs/test_holdout2.py"
_APISERVER: Final = "nominee.apiserver"
_AUTOSCALER: Final = "nominee.autoscaler"
_CONTROLLERS: Final = "nominee.controllers"
_KUBELET: Final = "nominee.kubelet"
_SCHEDULER: Final = "nominee.scheduler"

HOLDOUT2: Final[tuple[Unseen, ...]] = (
    # --- scheduler ---
    Unseen(
        mutation=Mutation(
            name="rank-by-least-important-victim",
            title="preemption compares nodes by their least important victim, not by the most important one",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.preemption.selection:criteria",
                    "lambda c: c.victims[0].priority",
                    "lambda c: c.victims[-1].priority",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="a pod must evict two pods on one node or one or two on another, of three or more priorities:"
        " the user sees an important pod evicted where only unimportant ones had to go",
        proof=f"{_PROOFS}::test_the_most_important_victim_decides_between_nodes",
    ),
    Unseen(
        mutation=Mutation(
            name="smaller-in-all-frees-room",
            title="a pod that was resized down requeues others only if it takes less of all they request",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.plugins.node_resources.plugin:NodeResourcesFit._scale_down_helps",
                    "return any(before.get(column, 0) > after.get(column, 0)",
                    "return all(before.get(column, 0) > after.get(column, 0)",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="a pod that requests cpu and memory is pending for want of cpu, and a running pod is resized"
        " to less cpu: the pod stays Pending (up to five minutes) although it fits",
        proof=f"{_PROOFS}::test_a_resize_of_cpu_alone_may_help_a_pod_that_requests_memory_too",
    ),
    Unseen(
        mutation=Mutation(
            name="unlabelled-nodes-are-a-domain",
            title="nodes without the topology label count as a domain of a hard spread constraint",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.plugins.pod_topology_spread.counts:HardState.count",
                    "masks = (labelled, inclusion.mask(constraint, snapshot))",
                    "masks = (inclusion.mask(constraint, snapshot),)",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="a Deployment spreads (DoNotSchedule) over zones in a cluster where a node has no zone label:"
        " only maxSkew pods are scheduled in each zone, the others stay Pending",
        proof=f"{_PROOFS}::test_nodes_without_the_topology_label_are_no_domain",
    ),
    Unseen(
        mutation=Mutation(
            name="deleted-while-binding-frees-no-node",
            title="the end of a pod that was being bound is announced without the node that it had",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.event_handlers:EventHandlers._assumed_pod_deleted",
                    "self._queue.move_all(ASSIGNED_POD_DELETE, assigned_copy(pod, node), None, now)",
                    "self._queue.move_all(ASSIGNED_POD_DELETE, pod, None, now)",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="a pod is deleted between its scheduling cycle and its binding, while another pod waits for"
        " that room: the other one stays Pending (up to five minutes) beside a node with room",
        proof=f"{_PROOFS}::test_a_pod_that_is_deleted_while_it_is_bound_frees_its_node",
    ),
    Unseen(
        mutation=Mutation(
            name="first-status-answer-kept",
            title="of the answers to a pod's status writes the first is kept, not the newest",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.dispatch.call_queue:CallQueue._settle",
                    "self._answers[call.uid] = written",
                    "self._answers.setdefault(call.uid, written)",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="the watch of pods lags behind two writes to one pod: the next patch is made against an old"
        " status, and a nomination (or its clearing) is never written",
        proof=f"{_PROOFS}::test_a_status_is_patched_from_the_newest_answer",
    ),
    # --- kubelet ---
    Unseen(
        mutation=Mutation(
            name="usage-kept-over-status",
            title="a pod's share of the node is not computed again when its status changes",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.allocation.manager:_take",
                    "record.pod, record.desired, record.share = pod, node.desired_of(pod), None",
                    "record.pod, record.desired = pod, node.desired_of(pod)",
                ),
            ),
        ),
        component="kubelet",
        disturbed=False,
        reached="a pod on a full node is resized down and a resize of another one is deferred: it stays"
        " Deferred although the first pod's status shows that the room is free",
        proof=f"{_PROOFS}::test_room_that_a_status_shows_to_be_free_is_given_to_a_deferred_resize",
    ),
    Unseen(
        mutation=Mutation(
            name="unseen-resize-forgotten-by-restart",
            title="a restarted kubelet retries only the resizes that it had shown as pending",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.allocation.manager:on_pods_added",
                    "if _admit_new(node, record, others, out) and node.differs(record):",
                    "if _admit_new(node, record, others, out) and node.differs(record) and get_condition("
                    "record.pod.status.conditions, conditions.PENDING) is not None:",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="a pod is resized while its kubelet is down (or just before it crashes): the resize is never"
        " allocated, and no condition says why",
        proof=f"{_PROOFS}::test_a_resize_made_while_the_kubelet_was_down_is_allocated",
    ),
    Unseen(
        mutation=Mutation(
            name="failed-removal-not-retried",
            title="the last deletion of a stopped pod is not tried again when its call fails",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.pod_sync.sync:resume",
                    "record.sandbox, record.sync.steps = sandbox, ()\n"
                    "            p.out.append(SyncLater(record.uid, FAILURE_RETRY_SECONDS))\n",
                    "record.sandbox, record.sync.steps = sandbox, ()\n"
                    "            if not isinstance(instruction, instructions.DeletePod):\n"
                    "                p.out.append(SyncLater(record.uid, FAILURE_RETRY_SECONDS))\n",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="the API server is away, or refuses, when a kubelet removes a pod that has stopped: the pod"
        " stays Terminating for ever",
        proof=f"{_PROOFS}::test_a_removal_that_failed_is_tried_again",
    ),
    # --- autoscaler ---
    Unseen(
        mutation=Mutation(
            name="drains-in-progress-not-counted",
            title="drains that are in progress do not count against --max-drain-parallelism",
            module=_AUTOSCALER,
            edits=(
                Edit(
                    "nominee.autoscaler.planning.scale_down.planner:crop_to_budgets",
                    "drains = min(total - len(chosen), options.max_drain_parallelism - draining)",
                    "drains = min(total - len(chosen), options.max_drain_parallelism)",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="a node becomes due while pods of another one terminate slowly: both have the ToBeDeleted"
        " taint and are drained at once, though one drain at a time is allowed",
        proof=f"{_PROOFS}::test_a_drain_in_progress_takes_up_the_budget_of_drains",
    ),
    Unseen(
        mutation=Mutation(
            name="needed-again-still-unneeded",
            title="a node that is needed again stays among the unneeded ones",
            module=_AUTOSCALER,
            edits=(
                Edit(
                    "nominee.autoscaler.planning.scale_down.unneeded_nodes:UnneededNodes.update",
                    "    self._nodes = nodes",
                    "    self._nodes |= nodes",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=False,
        reached="a node is idle for less than the unneeded time and then gets pods: it keeps its"
        " DeletionCandidate taint, and is tainted ToBeDeleted or drained although it is in use",
        proof=f"{_PROOFS}::test_a_node_that_is_needed_again_is_not_unneeded",
    ),
    Unseen(
        mutation=Mutation(
            name="failed-deletion-never-ends",
            title="a deletion of a node that failed counts as in progress for ever",
            module=_AUTOSCALER,
            edits=(
                Edit(
                    "nominee.autoscaler.actuation.node_deletion:NodeDeletion.run",
                    "        self._autoscaler.deletions.end_deletion(self._name)",
                    "        if not self._error:\n"
                    "            self._autoscaler.deletions.end_deletion(self._name)",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="the provider refuses a deletion, or its answer is lost, or a drain fails: the idle node is"
        " never deleted later, and with one drain at a time no other node is drained either",
        proof=f"{_PROOFS}::test_a_deletion_that_failed_has_ended",
    ),
    # --- controllers ---
    Unseen(
        mutation=Mutation(
            name="recreate-beside-terminating",
            title="a Recreate deployment does not wait for old pods that terminate",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.deployments.shell.deployments:DeploymentController._running",
                    'if any(not has_ended(pod) for pod in self.pods.by_index("owner", each.metadata.uid))',
                    'if any(not has_ended(pod) and not pod.metadata.HasField("deletionTimestamp")'
                    ' for pod in self.pods.by_index("owner", each.metadata.uid))',
                ),
            ),
        ),
        component="controllers",
        disturbed=False,
        reached="the image of a Deployment with strategy Recreate is changed: pods of the new version are"
        " created while those of the old one still terminate",
        proof=f"{_PROOFS}::test_a_pod_that_terminates_still_runs",
    ),
    Unseen(
        mutation=Mutation(
            name="spare-given-to-each-old-set",
            title="a rollout scales every old replica set down by all the pods that can be spared",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.deployments.rollout:_shrink_old",
                    "            spare -= count\n",
                    "",
                ),
            ),
        ),
        component="controllers",
        disturbed=False,
        reached="a Deployment is updated twice, the second time in the middle of the first rollout: more pods"
        " are unavailable than maxUnavailable allows",
        proof=f"{_PROOFS}::test_pods_that_can_be_spared_are_taken_once",
    ),
    Unseen(
        mutation=Mutation(
            name="tolerated-time-runs-on",
            title="the time that a pod tolerates a taint does not begin again after the taint was gone",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.nodes.shell.eviction:TaintEviction._cancel",
                    "self._due.pop(pod.metadata.uid, None)",
                    "self._due.get(pod.metadata.uid)",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="a node is unreachable twice, each time for less than tolerationSeconds: its pods are evicted"
        " at once, or too early, the second time",
        proof=f"{_PROOFS}::test_a_second_taint_is_tolerated_for_the_whole_time",
    ),
    Unseen(
        mutation=Mutation(
            name="unready-noted-before-done",
            title="a node's pods count as set to Ready=False before they are",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.nodes.shell.lifecycle:NodeLifecycle._mark_pods",
                    "await self._pods.mark_all(node.metadata.name)\n        self._to_unready.discard(uid)",
                    "self._to_unready.discard(uid)\n        await self._pods.mark_all(node.metadata.name)",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="a kubelet dies, and the write of one pod's Ready=False fails (conflict, or no answer): the"
        " node's other pods stay Ready, and in their Services' endpoints, for as long as the node is away",
        proof=f"{_PROOFS}::test_pods_of_a_silent_node_become_unready_after_a_failed_write_too",
    ),
    # --- machinery ---
    Unseen(
        mutation=Mutation(
            name="earlier-time-ignored",
            title="a key that waits in a work queue is not queued earlier when a shorter wait is asked for",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.machinery.runtime.queues.work_queue:WorkQueue.add_after",
                    'if self._later_at.get(key, float("inf")) <= at:',
                    "if key in self._later_at:",
                ),
            ),
        ),
        component="machinery",
        disturbed=False,
        reached="pods of a namespace with a ResourceQuota are deleted: status.used keeps their usage up to"
        " five minutes, and new pods are refused; failed reconciliations are retried as late",
        proof=f"{_PROOFS}::test_a_shorter_wait_replaces_a_longer_one",
    ),
    # --- apiserver ---
    Unseen(
        mutation=Mutation(
            name="scale-at-any-version",
            title="a Scale is written whatever resourceVersion it has",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.registry.scale:_take_over",
                    "    new.metadata.resourceVersion = scale.metadata.resourceVersion\n",
                    "",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="a user scales a Deployment between the read and the write of its autoscaler (or of another"
        " client of the scale): the user's number is overwritten instead of a conflict",
        proof=f"{_PROOFS}::test_a_scale_is_written_at_its_version",
    ),
    Unseen(
        mutation=Mutation(
            name="resize-charged-in-full",
            title="a quota is charged the whole usage of a pod that grows, not the increase",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.admission.resource_quota:_charges",
                    "(bound, increase if quota.counts(bound, request.kind, request.old) else used)",
                    "(bound, used)",
                ),
            ),
        ),
        component="apiserver",
        disturbed=False,
        reached="a pod is resized in a namespace whose ResourceQuota has room for the increase, but not for"
        " the pod once more: 403 exceeded quota; otherwise status.used is too high for a moment",
        proof=f"{_PROOFS}::test_an_update_is_charged_its_increase",
    ),
    Unseen(
        mutation=Mutation(
            name="class-policy-ignored",
            title="a pod does not get the preemptionPolicy of its PriorityClass",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.admission.pods.priority:Priority.admit",
                    "priority, policy = found.value, found.preemptionPolicy",
                    "priority = found.value",
                ),
            ),
        ),
        component="apiserver",
        disturbed=False,
        reached="a pod of a PriorityClass with preemptionPolicy Never does not fit: it has"
        " PreemptLowerPriority, and evicts others",
        proof=f"{_PROOFS}::test_a_pod_gets_the_preemption_policy_of_its_class",
    ),
    Unseen(
        mutation=Mutation(
            name="bound-under-another-uid",
            title="a binding is carried out whichever uid it was made for",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.registry.pods.binding:bind",
                    "Preconditions(uid=metadata.uid, resource_version=metadata.resourceVersion)",
                    "Preconditions(resource_version=metadata.resourceVersion)",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="a pod is deleted and created again under its name (StatefulSet) while the first one is being"
        " bound: the new pod is bound to a node that was chosen for the old one, filters and room ignored",
        proof=f"{_PROOFS}::test_a_binding_does_not_bind_another_pod_of_the_name",
    ),
)
