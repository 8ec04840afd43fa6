"""Mutations of the kubelet."""

from __future__ import annotations

from typing import Final

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit
from tests.mutations.unseen.unseen import Unseen

_MODULE: Final = "nominee.kubelet"
_MANAGER: Final = "nominee.kubelet.allocation.manager"
_SYNC: Final = "nominee.kubelet.pod_sync"

KUBELET: Final[tuple[Unseen, ...]] = (
    Unseen(
        mutation=Mutation(
            name="restart-admits-with-desired-resources",
            title="a restarted kubelet admits its pods with what their specs ask for",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_MANAGER}:_admit_new",
                    "resources = node.allocated(record)",
                    "resources = record.desired",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="the kubelet dies while a resize is deferred: the running pod is rejected as OutOfcpu",
        proof="tests/kubelet/test_sequences_golden.py::test_sequence[restart-age-order-lost]",
    ),
    Unseen(
        mutation=Mutation(
            name="pending-resize-not-queued-after-restart",
            title="a restarted kubelet queues a pending resize only if its condition was read before",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_MANAGER}:on_pods_added",
                    "if _admit_new(node, record, others, out) and node.differs(record):",
                    "if _admit_new(node, record, others, out) and record.pending is not None:",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="the kubelet dies while a resize is deferred: it is not retried when room becomes free",
        proof=(
            "tests/kubelet/test_kills.py"
            "::test_a_kill_before_an_instruction_loses_and_repeats_nothing[containers-18]"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="own-status-answer-ignored",
            title="a status is compared with what the watch shows, even if an answer is newer",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_SYNC}.api_steps:_newest",
                    "if answer is None or resource_version_of(record.pod) >= resource_version_of(answer):",
                    "if answer is None or answer.metadata.uid == record.uid:",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="the watch lags while a status changes there and back: the API server keeps the middle one",
        proof=(
            "tests/mutations/proofs/test_kubelet.py"
            "::test_a_status_is_compared_with_the_answer_to_the_last_write"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="failed-instruction-not-retried",
            title="a pod whose status write or runtime call failed is not synced again",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_SYNC}.sync:resume",
                    "p.out.append(SyncLater(record.uid, FAILURE_RETRY_SECONDS))",
                    "record.sync.last = None",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="the API server is away when a status is written, and the pod does not change again",
        proof="tests/kubelet/test_sync.py::test_what_fails_is_done_again_after_a_second[SaveCheckpoint]",
    ),
    Unseen(
        mutation=Mutation(
            name="checkpoint-counts-later-changes",
            title="a checkpoint counts as having the changes that were made while it was written",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.kubelet.shell.checkpoints.checkpointer:Checkpointer._write",
                    "self._saved, self._saved_allocations = version, allocations",
                    "self._saved, self._saved_allocations = self._version, self._allocations_version()",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="an allocation is made while another is written, and the kubelet dies after its actuation",
        proof=(
            "tests/mutations/proofs/test_kubelet.py"
            "::test_a_checkpoint_has_the_allocations_from_before_its_write_began"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="lease-kept-after-failed-renewal",
            title="a node's lease is not read again after a renewal has failed",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.kubelet.shell.registration:Registrar.renew",
                    "self._leases.pop(agent.name, None)",
                    "pass",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="the answer to a renewal is lost: all later ones are conflicts: the node is unreachable",
        proof=(
            "tests/mutations/proofs/test_kubelet.py::test_a_lease_that_another_client_changed_is_read_again"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="deferred-resize-not-retried-on-removal",
            title="pending resizes are not retried when pods leave the node",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_MANAGER}:on_pods_removed",
                    "if node.features.resize:",
                    "if node.features.resize and not node.pods:",
                ),
            ),
        ),
        component="kubelet",
        disturbed=False,
        reached="a pod whose end was not seen is gone: the resize waits three minutes for the periodic retry",
        proof=(
            "tests/kubelet/test_node_preemption_policy.py"
            "::test_the_condition_is_cleared_when_the_resize_is_resolved_or_cancelled[_allocate]"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="older-pod-put-back",
            title="changes whose admission failed replace newer ones when they are put back",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.kubelet.shell.process:Kubelet._put_back",
                    "self._inbox.setdefault(_inbox_key(uid, newest), (node, newest))",
                    "self._inbox[_inbox_key(uid, pod)] = (node, pod)",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="an admission fails, and the pod is deleted before it is tried again: it is started anyway",
        proof=(
            "tests/mutations/proofs/test_kubelet.py::test_changes_that_are_put_back_do_not_replace_newer_ones"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="failed-actuation-not-retried",
            title="an actuation that failed is not tried again by itself",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_SYNC}.resize_step:fail",
                    "p.out.append(SyncLater(p.record.uid, ACTUATION_RETRY_SECONDS))",
                    "pass",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="a call of the runtime fails during an actuation: the resize stays in Error",
        proof=(
            "tests/kubelet/test_sync.py"
            "::test_a_refused_call_leaves_what_is_done_and_is_made_again_after_ten_seconds"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="resize-lost-in-merged-event",
            title="a change of the spec is missed if the status has changed in the same event",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.kubelet.sync_loop:_on_change",
                    "if spec_changed or old.status == pod.status:",
                    "if old.status == pod.status:",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="the watch is slow, and shows a resize together with a status",
        proof=(
            "tests/kubelet/test_infeasible.py"
            "::test_exclusive_cpus_and_memory_of_guaranteed_pods_stay[settings0-change0-want0]"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="restart-removes-running-containers",
            title="a restarted kubelet removes the containers of pods that are being deleted",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.kubelet.shell.agent:Agent.begin",
                    "self.runtime.remove_orphans(pod.metadata.uid for pod in listed)",
                    "self.runtime.remove_orphans(\n"
                    "            pod.metadata.uid for pod in listed"
                    " if not pod.metadata.HasField('deletionTimestamp')\n"
                    "        )",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="the kubelet dies during a pod's grace period: its containers are gone before their time",
        proof=(
            "tests/mutations/proofs/test_kubelet.py"
            "::test_a_new_process_keeps_the_containers_of_a_pod_in_its_grace_period"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="grace-period-of-spec",
            title="containers get the grace period of the spec, whatever the deletion asked for",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_SYNC}.stop_steps:_has_time",
                    "if is_terminating(pod)",
                    "if is_terminating(pod) and not pod.spec.HasField('terminationGracePeriodSeconds')",
                ),
            ),
        ),
        component="kubelet",
        disturbed=False,
        reached="a pod is deleted with a shorter grace period than that of its spec",
        proof="tests/kubelet/test_sync.py::test_a_shorter_grace_period_shortens_the_wait",
    ),
    Unseen(
        mutation=Mutation(
            name="allocation-of-removed-pod-kept",
            title="the allocation of a pod that is gone is kept",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.kubelet.node.state:NodeState.release",
                    "self.allocations.pop(uid, None)",
                    "if uid in self.pods:\n        self.allocations.pop(uid, None)",
                ),
            ),
        ),
        component="kubelet",
        disturbed=False,
        reached="any pod is removed: the checkpoint grows",
        proof="tests/kubelet/test_allocation.py::test_a_pod_that_is_gone_has_no_allocation",
    ),
)
