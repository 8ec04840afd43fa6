"""Mutations that are kept apart: the fifth set, by an author who did not know what the lab checks."""

from __future__ import annotations

from typing import Final

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit
from tests.mutations.unseen.unseen import Unseen

_PROOFS: Final = "tests/mutations/proofs/test_holdout5.py"
_APISERVER: Final = "nominee.apiserver"
_AUTOSCALER: Final = "nominee.autoscaler"
_CONTROLLERS: Final = "nominee.controllers"
_KUBELET: Final = "nominee.kubelet"
_SCHEDULER: Final = "nominee.scheduler"

HOLDOUT5: Final[tuple[Unseen, ...]] = (
    # --- scheduler ---
    Unseen(
        mutation=Mutation(
            name="anti-affinity-holder-gone-wakes-none",
            title="the end of a pod whose own anti-affinity kept others away requeues none of them",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.plugins.inter_pod_affinity.hints:_may_help",
                    " or _all_match(_checked(pod_terms(before)).required_anti, pod.pod)",
                    "",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="a pod with a required anti-affinity term keeps another one, which has none, off the only"
        " node, and is deleted: the other one stays Pending beside a free node, for up to five minutes",
        proof=f"{_PROOFS}::test_the_end_of_a_pod_that_kept_others_away_wakes_them",
    ),
    Unseen(
        mutation=Mutation(
            name="waits-for-victims-on-refusing-node",
            title="a preemptor waits for its victims also where their node does not take it any more",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.preemption.eligibility:why_not_eligible",
                    "if not nominated or nominated_status.code is Code.UnschedulableAndUnresolvable:",
                    "if not nominated:",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="the victims of a preemptor take their grace period of some minutes, and their node is"
        " cordoned or tainted meanwhile: the preemptor waits for them in vain, although it could preempt on"
        " another node at once",
        proof=f"{_PROOFS}::test_a_preemptor_does_not_wait_for_victims_on_a_node_that_refuses_it",
    ),
    Unseen(
        mutation=Mutation(
            name="verdict-during-group-write-dropped",
            title="what is decided about a pod group while its status is being written is never written",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.shell.calls.group_status:GroupConditions._run",
                    "        if self._latest[key] is verdict:\n"
                    "            del self._latest[key]\n"
                    "            return\n",
                    "        del self._latest[key]\n        return\n",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="the API server is slow or away while the status of an unschedulable gang is written, and"
        " the gang gets its nodes before it answers: all pods run, and the group's condition says"
        " Unschedulable for ever",
        proof=f"{_PROOFS}::test_the_last_verdict_about_a_group_is_written",
    ),
    Unseen(
        mutation=Mutation(
            name="own-claim-write-not-awaited",
            title="a claim that the watch does not show with its node yet counts as one that was given back",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.plugins.volume_binding.binder:VolumeBinder._is_claim_provisioned",
                    "    if _is_older(seen, claim):\n        return False\n",
                    "",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="the scheduler's watch of claims is behind its own write of the selected node: the binding"
        ' fails ("provisioning failed"), and the pod goes back to the queue while its volume is being made',
        proof=f"{_PROOFS}::test_a_claim_that_is_older_than_its_write_is_waited_for",
    ),
    # --- controllers ---
    Unseen(
        mutation=Mutation(
            name="scaling-forgotten-before-policy-ends",
            title="an autoscaler forgets its scalings after the stabilization windows, however long its"
            " policies look back",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.horizontal_pod_autoscalers.normalization:normalize",
                    "history.forget(now, max(down_window, up_window, *periods))",
                    "history.forget(now, max(down_window, up_window))",
                ),
            ),
        ),
        component="controllers",
        disturbed=False,
        reached="an autoscaler may remove one pod in ten minutes, and has a stabilization window of zero:"
        " it removes one pod in each of its syncs",
        proof=f"{_PROOFS}::test_a_policy_counts_the_scalings_of_its_whole_period",
    ),
    Unseen(
        mutation=Mutation(
            name="partition-counted-from-zero",
            title="a partition is compared with ordinals that begin at zero, whatever the set's first"
            " ordinal is",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.stateful_sets.rollout:_replica",
                    "is_old = ordinal < of.spec.ordinals.start + partition",
                    "is_old = ordinal < partition",
                ),
            ),
        ),
        component="controllers",
        disturbed=False,
        reached="a StatefulSet has ordinals.start and a partition, its template changes, and a pod below"
        " the partition is deleted: it comes back with the new template, which the partition should keep"
        " from it",
        proof=f"{_PROOFS}::test_a_partition_begins_at_the_first_ordinal",
    ),
    Unseen(
        mutation=Mutation(
            name="finalizer-left-without-allocation",
            title="the finalizer of a claim goes only together with its allocation",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.devices.reservations:plan",
                    "drops = freed and (new is not None or terminating)",
                    "drops = freed and new is not None",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the controllers are killed between the writes that free a claim's devices and that remove"
        " its finalizer, or the scheduler between its finalizer and its allocation; the claim is deleted"
        " later: it terminates for ever, and so does its namespace",
        proof=f"{_PROOFS}::test_a_claim_that_was_freed_before_its_deletion_goes",
    ),
    Unseen(
        mutation=Mutation(
            name="job-ends-before-its-pods-are-seen",
            title="a Job ends while pods that it has created are still to be shown by the watch",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.jobs.sync:JobSync.note_work",
                    "if self.active > 0 or not self._satisfied:",
                    "if self.active > 0:",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="a Job's deadline is over while the watch of pods is behind its creations: it is Failed,"
        " with no pod to delete, and the pods that come into sight afterwards run on without an owner that"
        " ends them",
        proof=f"{_PROOFS}::test_a_job_does_not_end_before_its_pods_are_seen",
    ),
    # --- kubelet ---
    Unseen(
        mutation=Mutation(
            name="usage-before-read-after-change",
            title="whether a pod has become smaller is read from the pod that has changed already",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.allocation.manager:on_pod_reconciled",
                    "    old_phase, old_usage = record.pod.status.phase, node.usage(record)\n"
                    "    _take(node, record, pod)\n",
                    "    old_phase = record.pod.status.phase\n"
                    "    _take(node, record, pod)\n"
                    "    old_usage = node.usage(record)\n",
                ),
            ),
        ),
        component="kubelet",
        disturbed=False,
        reached="the resize of one pod is deferred, and another one on its node is resized down: the room"
        " is there once that is done, and the deferred one is not tried before the periodic retry, after up"
        " to three minutes",
        proof=f"{_PROOFS}::test_a_deferred_resize_is_tried_when_another_pod_has_become_smaller",
    ),
    Unseen(
        mutation=Mutation(
            name="crashed-container-keeps-due-probe",
            title="a container that has crashed before it was ready is ready at the time of its former run",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.pod_sync.run_steps:_begin_run",
                    "    p.forget(Step.PROBE)\n",
                    "",
                ),
            ),
        ),
        component="kubelet",
        disturbed=False,
        reached="a container crashes before its ready delay is over, and starts again: it becomes ready,"
        " and gets traffic, with the delay of the run that has crashed, which may be at once",
        proof=f"{_PROOFS}::test_the_ready_delay_begins_again_with_each_run",
    ),
    Unseen(
        mutation=Mutation(
            name="pods-listed-before-registration",
            title="a kubelet that starts takes the pods that its node had before it was registered",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.shell.process:Kubelet._run_node",
                    "    agent.node_changed(await self.registrar.register(agent))\n"
                    '    await refresh_node(self.client, agent, self.pods.by_index("node", agent.name))\n'
                    "    if (node := self.node_objects.get(agent.name)) is not None:\n"
                    "        agent.node_changed(node)\n"
                    "    self.agents[agent.name] = agent\n"
                    '    agent.begin(self.pods.by_index("node", agent.name))\n',
                    '    pods = self.pods.by_index("node", agent.name)\n'
                    "    agent.node_changed(await self.registrar.register(agent))\n"
                    "    await refresh_node(self.client, agent, pods)\n"
                    "    if (node := self.node_objects.get(agent.name)) is not None:\n"
                    "        agent.node_changed(node)\n"
                    "    self.agents[agent.name] = agent\n"
                    "    agent.begin(pods)\n",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="a kubelet restarts, and a pod is bound to its node, or removed from it, while the"
        " registration waits for the API server: the new pod is not started, and the old one keeps its room,"
        " until something else about them changes",
        proof=f"{_PROOFS}::test_a_kubelet_begins_with_the_pods_of_after_its_registration",
    ),
    # --- autoscaler ---
    Unseen(
        mutation=Mutation(
            name="newest-pod-holds-scale-up-back",
            title="a scale-up waits as long as any pending pod is younger than two seconds",
            module=_AUTOSCALER,
            edits=(
                Edit(
                    "nominee.autoscaler.planning.objects.pods:all_pods_are_new",
                    "return min(map(creation_seconds, pods)) + UNSCHEDULABLE_POD_BUFFER_SECONDS > now",
                    "return max(map(creation_seconds, pods)) + UNSCHEDULABLE_POD_BUFFER_SECONDS > now",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=False,
        reached="pods that fit on no node are created again and again, one in every second or two: no loop"
        " scales up, and the oldest of them wait as long as that goes on",
        proof=f"{_PROOFS}::test_an_old_pod_is_not_held_back_by_a_new_one",
    ),
    Unseen(
        mutation=Mutation(
            name="terminating-pods-of-drain-pending-too",
            title="the evicted pods of a drained node are looked for a place besides those that replace them",
            module=_AUTOSCALER,
            edits=(
                Edit(
                    "nominee.autoscaler.steps.cluster.process_pod_list:_currently_drained_pods",
                    'if is_recreated and not pod.metadata.HasField("deletionTimestamp"):',
                    "if is_recreated:",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=False,
        reached="a node is drained whose pods take their grace period, and the others have little more room"
        " than its pods need: their replacements take it, and for the terminating ones a node is added,"
        " which is unneeded then",
        proof=f"{_PROOFS}::test_evicted_pods_of_a_drained_node_need_no_place",
    ),
    Unseen(
        mutation=Mutation(
            name="each-failure-doubles-back-off",
            title="each failure doubles the back-off of a node group, also those during the back-off",
            module=_AUTOSCALER,
            edits=(
                Edit(
                    "nominee.autoscaler.planning.node_groups.backoff:NodeGroupBackoff.backoff",
                    "failures = 1 if former is None else former.failures + (former.until < now)",
                    "failures = 1 if former is None else former.failures + 1",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="the instances of one increase fail one after the other: the group is left out for four or"
        " more times as long as after one failure, and pods that fit on its nodes only wait for that",
        proof=f"{_PROOFS}::test_failures_during_a_back_off_do_not_double_it",
    ),
    # --- apiserver ---
    Unseen(
        mutation=Mutation(
            name="limit-range-skips-init-containers",
            title="init containers do not get the defaults of a LimitRange",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.admission.limit_ranger:fill_in",
                    '        ("init container", pod.spec.initContainers),\n',
                    "",
                ),
            ),
        ),
        component="apiserver",
        disturbed=False,
        reached="a namespace has a LimitRange with defaults and a minimum, or a quota for cpu, and a pod"
        ' has an init container without requests: it is refused ("No request is specified", "must specify'
        ' cpu")',
        proof=f"{_PROOFS}::test_init_containers_get_the_defaults_of_a_limit_range",
    ),
    Unseen(
        mutation=Mutation(
            name="first-quota-charged-though-second-refuses",
            title="a write that one quota refuses is charged to those that were asked before it",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.admission.resource_quota:ResourceQuota.validate",
                    "        if len(charges) > 1:\n"
                    "            # A write that one quota refuses is charged to no other one.\n"
                    "            for name, used in charges:\n"
                    "                await self._check(request, lookup, name, used)\n",
                    "",
                ),
            ),
        ),
        component="apiserver",
        disturbed=False,
        reached="two quotas of a namespace limit pods, and the second one is used up: each creation that it"
        " refuses uses some of the first one, which is full soon without any pod, until it is counted again",
        proof=f"{_PROOFS}::test_a_refused_write_is_charged_to_no_quota",
    ),
    Unseen(
        mutation=Mutation(
            name="pending-pod-evicted-once-ready",
            title="a pod that was pending when its eviction came is evicted without a budget, whatever it"
            " is by then",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.registry.pods.eviction:EvictionRequest.run",
                    "        if _may_become_ready(pod.message) and not asked_revision:\n"
                    "            pinned = _at_revision(options, pod.revision)\n",
                    "",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="a node is drained while one of its pods starts: the kubelet reports it as ready between"
        " the look at the pod and its deletion, and it is evicted although its budget allows no disruption",
        proof=f"{_PROOFS}::test_a_pod_that_becomes_ready_is_protected_by_its_budget",
    ),
    Unseen(
        mutation=Mutation(
            name="collection-ends-at-absent-object",
            title="the deletion of a collection ends at the first object that is gone when its turn comes",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.registry.deletions.collection:delete_collection",
                    "        with errors.ignoring(errors.is_not_found):\n            await delete(context, ",
                    "        await delete(context, ",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="a collection is deleted while a controller or another client deletes some of its objects:"
        " the request fails with 404, and the objects after that one stay",
        proof=f"{_PROOFS}::test_the_deletion_of_a_collection_skips_what_is_gone",
    ),
    # --- machinery ---
    Unseen(
        mutation=Mutation(
            name="unseen-end-is-no-gap",
            title="the end of an object that the informer never had counts as no gap",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.machinery.client.watches.informer:Informer._remove",
                    "    self._unseen_deletions += not is_shown\n    if old is not None:\n",
                    "    if old is not None:\n        self._unseen_deletions += not is_shown\n",
                ),
            ),
        ),
        component="machinery",
        disturbed=True,
        reached="a watch is slow, and its events are merged: a pod that a ReplicaSet or a Job has just"
        " created is deleted by a user, and only its end is shown; its owner waits for it, one pod short,"
        " until something else about it changes",
        proof=f"{_PROOFS}::test_the_end_of_an_unknown_object_is_a_gap",
    ),
    Unseen(
        mutation=Mutation(
            name="leader-counts-from-answer",
            title="a leader counts the time of its lease from the answer to a renewal, not from the request",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.machinery.client.leader_election:LeaderElector._write",
                    "self._renewed_at = asked_at",
                    "self._renewed_at = self._observed_at",
                ),
            ),
        ),
        component="machinery",
        disturbed=True,
        reached="the API server answers a renewal after seven seconds, and then not at all: the leader goes"
        " on for some seconds after another candidate has taken its lease, and two schedulers bind pods",
        proof=f"{_PROOFS}::test_a_lease_is_counted_from_the_request_of_its_renewal",
    ),
)
