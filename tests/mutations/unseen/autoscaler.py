"""Mutations of the autoscaler and of the cloud."""

from __future__ import annotations

from typing import Final

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit
from tests.mutations.unseen.unseen import Unseen

_MODULE: Final = "nominee.autoscaler"
_DELETION: Final = "nominee.autoscaler.actuation.node_deletion:NodeDeletion"
_STEPS: Final = "nominee.autoscaler.steps"

AUTOSCALER: Final[tuple[Unseen, ...]] = (
    Unseen(
        mutation=Mutation(
            name="clean-up-not-repeated",
            title="the clean-up of an earlier process's taints counts as done before it is",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_STEPS}.cluster.clean_up_if_required:clean_up_if_required",
                    "if state.is_cleaned_up:\n        return",
                    "if state.is_cleaned_up:\n        return\n    state.is_cleaned_up = True",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="the autoscaler dies during a deletion, and the API server is away when it has started again",
        proof="tests/autoscaler/steps/test_orders.py::test_a_taint_that_cannot_be_removed_ends_the_loop",
    ),
    Unseen(
        mutation=Mutation(
            name="earlier-taints-left",
            title="nodes that are tainted already keep their taints if another one cannot be tainted",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.autoscaler.actuation.start_deletion:_taint",
                    "for earlier in tainted:",
                    "for earlier in tainted[1:]:",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="two nodes are empty, and the API server refuses the second one's taint",
        proof="tests/autoscaler/steps/test_orders.py::test_a_taint_that_fails_has_the_others_removed",
    ),
    Unseen(
        mutation=Mutation(
            name="failed-deletion-stays-in-progress",
            title="a deletion that has failed counts as in progress",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_DELETION}.run",
                    "self._autoscaler.deletions.end_deletion(self._name)",
                    "if self.state is not DeletionState.FAILED:\n"
                    "            self._autoscaler.deletions.end_deletion(self._name)",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="a drain fails: no other node of the group is deleted, and its pods count as pending",
        proof=(
            "tests/autoscaler/actuation/test_deletion_states.py"
            "::test_a_failpoint_ends_the_deletion_and_the_node_loses_its_taint"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="pods-of-empty-node-not-rechecked",
            title="the last check of an empty node does not look for pods that have come since",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.autoscaler.actuation.recheck:recheck",
                    "if not drain and to_move.pods:",
                    "if drain and not to_move.pods and on_node:",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="a pod is bound to an empty node between the decision and its deletion",
        proof="tests/autoscaler/test_golden.py::test_decisions_are_as_recorded[mixed-random/089@1.36]",
    ),
    Unseen(
        mutation=Mutation(
            name="second-scale-up-replaces-first",
            title="an increase replaces the request for the nodes that have not come yet",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.autoscaler.planning.node_groups.scale_up_requests:ScaleUpRequests._apply",
                    "increase = what.nodes + (former.increase if former is not None else 0)",
                    "increase = what.nodes",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="a group is increased twice before its nodes register, and they do not come in time",
        proof=(
            "tests/autoscaler/test_scale_up_requests.py"
            "::test_an_increase_starts_the_request_again_and_a_failure_does_not"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="timed-out-scale-up-reverted-again",
            title="a scale-up that has timed out is reverted in each loop",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.autoscaler.planning.node_groups.scale_up_requests:ScaleUpRequests.take_to_revert",
                    "taken, self._to_revert = self._to_revert, []",
                    "taken = list(self._to_revert)",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="the instances of a scale-up are stuck: later requests are cancelled, too",
        proof=(
            "tests/autoscaler/test_golden.py"
            "::test_decisions_are_as_recorded[upcoming/provision-timeout-short@1.36]"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="deletions-under-way-below-minimum",
            title="nodes whose deletion is under way are not subtracted from their group's size",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.autoscaler.planning.scale_down.unneeded_nodes:UnneededNodes._reason",
                    "if sizes[group.id] - inputs.deletions.count(group.id) <= group.min:",
                    "if sizes[group.id] <= group.min:",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="a drain takes longer than a loop, and another node of the group is unneeded by then",
        proof="tests/autoscaler/test_minimum_size.py::test_a_drain_in_progress_counts_toward_the_minimum",
    ),
    Unseen(
        mutation=Mutation(
            name="unreadable-pods-count-as-gone",
            title="evicted pods that cannot be read count as gone",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_DELETION}._check_pods",
                    "self._pods if isinstance(left, Failure)",
                    "() if isinstance(left, Failure)",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="the API server is away during a drain: the node is deleted under its terminating pods",
        proof="tests/mutations/proofs/test_autoscaler.py::test_pods_that_cannot_be_read_are_not_gone",
    ),
    Unseen(
        mutation=Mutation(
            name="no-pause-after-scale-up",
            title="a scale-up does not begin the pause before the next scale-down",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_STEPS}.scaling.scale_up:execute_scale_up",
                    "state.cooldowns.scaled_up(context.result.at.monotonic)",
                    "pass",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=False,
        reached="a group is increased while another one has unneeded nodes",
        proof="tests/mutations/proofs/test_autoscaler.py::test_no_node_is_deleted_soon_after_a_scale_up",
    ),
    Unseen(
        mutation=Mutation(
            name="instance-deleted-twice",
            title="the cloud decreases the size again for an instance that is being deleted already",
            module="nominee.autoscaler.cloud",
            edits=(
                Edit(
                    "nominee.autoscaler.cloud.state:CloudState.delete",
                    "if instance.state is not InstanceState.DELETING:",
                    "if instance.due is None or instance.due > now:",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="the answer to a deletion is lost, and the autoscaler deletes the node again",
        proof=(
            "tests/mutations/proofs/test_autoscaler.py"
            "::test_an_instance_that_is_being_deleted_is_not_counted_again"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="unregistered-instances-below-minimum",
            title="old unregistered instances are deleted one below the minimum size",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_STEPS}.node_groups.remove_old_unregistered_nodes:remove_old_unregistered_nodes",
                    "late = late[: max(group.target - group.min, 0)]",
                    "late = late[: max(group.target - group.min + 1, 0)]",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="all instances of a group are stuck: its size falls below the minimum",
        proof=(
            "tests/autoscaler/steps/test_orders.py::test_unregistered_nodes_are_deleted_down_to_the_minimum"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="needed-node-stays-unneeded",
            title="a node that is needed again stays among the unneeded ones",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.autoscaler.planning.scale_down.unneeded_nodes:UnneededNodes.update",
                    "self._nodes = nodes",
                    "self._nodes |= nodes",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=False,
        reached="a pod comes to a node that was unneeded: it is removed nevertheless when its time has come",
        proof="tests/autoscaler/test_cooldowns.py::test_a_refused_deletion_delays_its_group[True-again1]",
    ),
)
