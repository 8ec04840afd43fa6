"""Mutations that are kept apart: the sixth set, by an author who did not know what the lab checks."""

from __future__ import annotations

from typing import Final

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit
from tests.mutations.unseen.unseen import Unseen

_PROOFS: Final = "tests/mutations/proofs/test_holdout6.py"
_CONTROLLERS: Final = "nominee.controllers"
_KUBELET: Final = "nominee.kubelet"
_SCHEDULER: Final = "nominee.scheduler"

HOLDOUT6: Final[tuple[Unseen, ...]] = (
    # --- scheduler ---
    Unseen(
        mutation=Mutation(
            name="recreated-node-begins-empty",
            title="a node that is deleted leaves the scheduler's cache with its pods still on it",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.framework.cluster.cache:Cache.remove_node",
                    "    if not info.pods:\n        del self._nodes[name]\n",
                    "    del self._nodes[name]\n",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="a Node is deleted by hand, and its kubelet restarts and registers it again before the pods"
        " are collected: the scheduler takes the node to be empty until the pods change, and binds more to it"
        " than fits; the kubelet fails these with OutOfcpu or OutOfmemory",
        proof=f"{_PROOFS}::test_a_node_that_comes_again_still_has_its_pods",
    ),
    Unseen(
        mutation=Mutation(
            name="equal-reason-keeps-old-message",
            title="PodScheduled keeps its message when an attempt fails for another cause of the same reason",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.pod_status:_condition_patch",
                    "elif old.reason == reason and old.message == message:",
                    "elif old.reason == reason:",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="a pod finds too little cpu, and then the nodes are cordoned, or others join, and it is tried"
        " again: the condition goes on saying what kept it away at first, while the events say the truth",
        proof=f"{_PROOFS}::test_the_condition_says_why_the_last_attempt_failed",
    ),
    Unseen(
        mutation=Mutation(
            name="added-resource-is-no-change",
            title="a resource that a node did not have before is no change of its allocatable",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.object_changes:_equal_amounts",
                    "    if len(a) != len(b):\n        return False\n",
                    "",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="a pod asks for an extended resource that no node has, and a device plugin (a patch of the"
        " node's status) adds it to one: the pod stays Pending beside a free node, for up to five minutes",
        proof=f"{_PROOFS}::test_a_resource_that_a_node_gets_wakes_pods",
    ),
    Unseen(
        mutation=Mutation(
            name="preemptor-of-stopped-victim-held-back",
            title="a preemptor whose victims were only stopped in memory is not released afterwards",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.shell.loop.evictions:Evictions._release_preemptor",
                    "if info is not attempt.info or any(not victim.pod.spec.nodeName for victim in victims):",
                    "if info is not attempt.info:",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="pods of a gang wait on Permit, or a pod waits in PreBind for its volume, and a pod of higher"
        " priority needs that room: the victim goes back to the queue before the eviction is over, and the"
        " preemptor stays Pending and nominated beside the free room",
        proof=f"{_PROOFS}::test_a_preemptor_goes_on_when_its_victim_was_only_stopped",
    ),
    Unseen(
        mutation=Mutation(
            name="claims-of-nodes-kept-as-first-seen",
            title="the claims that pods of a node use are read once, and again only when the node changes",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.plugins.volumes.volume_restrictions:_is_used",
                    ", follows_pods=True",
                    "",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="two pods use one ReadWriteOncePod claim, the second one created while the first one runs:"
        " both are bound and run; or the first one goes, and the second one stays Pending, since its claim"
        " passes for used",
        proof=f"{_PROOFS}::test_a_claim_for_one_pod_is_free_or_used_as_pods_come_and_go",
    ),
    # --- kubelet ---
    Unseen(
        mutation=Mutation(
            name="failed-status-report-counts-as-done",
            title="a node's status counts as compared before it is written",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.shell.registration:Registrar.report",
                    "    if not self._is_due(agent) and"
                    " same_but_heartbeat(self._desired_status(agent, node), node.status):\n"
                    "        self._settled[agent.name] = node\n"
                    "        return\n",
                    "    self._settled[agent.name] = node\n"
                    "    if not self._is_due(agent) and"
                    " same_but_heartbeat(self._desired_status(agent, node), node.status):\n"
                    "        return\n",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="a node was out of reach, and its conditions were set to Unknown; it returns, and the write"
        " that makes it Ready fails once, since the API server is overloaded or restarts: the node stays"
        " NotReady and tainted for up to five minutes, and its pods are evicted",
        proof=f"{_PROOFS}::test_a_status_report_that_failed_is_tried_with_the_next_beat",
    ),
    Unseen(
        mutation=Mutation(
            name="ephemeral-containers-not-in-checkpoint",
            title="the checkpoint has no ephemeral containers",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.runtime.sandbox:to_json",
                    "    if sandbox.ephemeral:\n"
                    '        document["ephemeral"] = [_row(container) for container in sandbox.ephemeral]\n',
                    "",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="kubectl debug adds a container to a pod that runs, and the kubelet restarts: it starts the"
        " container a second time, with another startedAt in its status and a second Started event",
        proof=f"{_PROOFS}::test_an_ephemeral_container_is_started_once_also_across_a_restart",
    ),
    Unseen(
        mutation=Mutation(
            name="lower-priority-does-not-stand-back",
            title="a deferred resize of lower priority may go before one of higher priority",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.allocation.resize_queue:_goes_before",
                    "    if priority != other_priority:\n        return priority > other_priority\n",
                    "    if priority > other_priority:\n        return True\n",
                ),
            ),
        ),
        component="kubelet",
        disturbed=False,
        reached="the resizes of two pods of a node are deferred, the one of lower priority is Guaranteed or"
        " waits for longer, and room for one of them becomes free: it gets the room, and the one of higher"
        " priority stays deferred",
        proof=f"{_PROOFS}::test_room_goes_to_the_resize_of_the_highest_priority",
    ),
    Unseen(
        mutation=Mutation(
            name="address-of-crash-loop-is-free",
            title="a pod none of whose containers runs any more holds no address",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.runtime.emulated_runtime:EmulatedRuntime._address",
                    "for sandbox in self.sandboxes.values()}",
                    "for sandbox in self.sandboxes.values() if sandbox.running or not sandbox.begun}",
                ),
            ),
        ),
        component="kubelet",
        disturbed=False,
        reached="a pod is in CrashLoopBackOff, and another one starts on its node: that gets the first one's"
        " address, and both have it once the first one runs again, as the Endpoints of their Services do",
        proof=f"{_PROOFS}::test_a_pod_keeps_its_address_between_two_runs",
    ),
    # --- machinery ---
    Unseen(
        mutation=Mutation(
            name="indexes-beyond-completions-count",
            title="completed indexes that an Indexed Job does not have any more are counted",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.machinery.wire.values.index_ranges:ranges",
                    "min(int(last or first), completions - 1) + 1",
                    "int(last or first) + 1",
                ),
            ),
        ),
        component="machinery",
        disturbed=False,
        reached="an Indexed Job is scaled down (parallelism and completions together) after one of its last"
        " indexes has succeeded: that goes on counting, and the Job is Complete while an index below"
        " completions has not succeeded",
        proof=f"{_PROOFS}::test_a_job_that_is_scaled_down_counts_only_the_indexes_it_has",
    ),
    Unseen(
        mutation=Mutation(
            name="own-seconds-of-daemon-toleration-kept",
            title="a toleration that daemons have in any case keeps the template's tolerationSeconds",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.machinery.scheduling.daemons:tolerations_of",
                    "                tolerations[index] = added  # without tolerationSeconds\n",
                    "",
                ),
            ),
        ),
        component="machinery",
        disturbed=True,
        reached="a DaemonSet's template was copied from a pod, with not-ready and unreachable tolerated for"
        " 300 seconds, and a node is out of reach for longer: its daemon pod is evicted, but should stay",
        proof=f"{_PROOFS}::test_daemons_tolerate_a_lost_node_for_ever",
    ),
    Unseen(
        mutation=Mutation(
            name="expired-event-not-made-again",
            title="an event that is gone when it happens once more is taken for recorded",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.machinery.events.recorder:BufferedRecorder._patch",
                    "                raise\n            await self._client.create(event)\n",
                    "                raise\n",
                ),
            ),
        ),
        component="machinery",
        disturbed=False,
        reached="a container crashes again and again, and its BackOff event is deleted, or has expired, or"
        " could not be created while the API server was away: from then on no event shows that it backs off",
        proof=f"{_PROOFS}::test_an_event_that_was_deleted_is_recorded_again",
    ),
)
