"""Mutations of the controllers."""

from __future__ import annotations

from typing import Final

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit
from tests.mutations.unseen.unseen import Unseen

_MODULE: Final = "nominee.controllers"
_SETS: Final = "nominee.controllers.owned_pods.shell.pod_owner:PodOwner"

CONTROLLERS: Final[tuple[Unseen, ...]] = (
    Unseen(
        mutation=Mutation(
            name="expectation-not-lowered",
            title="a deletion that was refused stays expected",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_SETS}.delete_pod",
                    "self.expectations.note_deletion(key, pod.metadata.uid)",
                    "if is_not_found(error):\n"
                    "            self.expectations.note_deletion(key, pod.metadata.uid)",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the API server is away when a set is scaled down: it is not reconciled for five minutes",
        proof="tests/mutations/proofs/test_controllers.py::test_a_deletion_that_was_refused_is_not_expected",
    ),
    Unseen(
        mutation=Mutation(
            name="one-fulfilled-expectation-is-enough",
            title="expected deletions do not matter when no creations are expected, and the reverse",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.controllers.owned_pods.expectations:Expectations.satisfied",
                    "if not self._creations.get(key) and not self._deletions.get(key):",
                    "if not self._creations.get(key) or not self._deletions.get(key):",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the watch of pods lags: a set creates its pods twice, or deletes too many",
        proof="tests/mutations/proofs/test_controllers.py::test_creations_alone_are_waited_for",
    ),
    Unseen(
        mutation=Mutation(
            name="removed-pod-not-replaced",
            title="a set is not reconciled for a pod that is gone without having been seen to terminate",
            module=_MODULE,
            edits=(
                Edit(
                    f"{_SETS}._pod_gone",
                    "self.pod_changed(key)",
                    "if pod.metadata.HasField('deletionTimestamp'):\n            self.pod_changed(key)",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="a pod is removed without grace, or while the watch was broken",
        proof=(
            "tests/mutations/proofs/test_controllers.py"
            "::test_a_set_is_reconciled_for_a_pod_that_was_not_seen_to_terminate"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="unready-pods-once",
            title="pods are set to not ready only the first time that their node is silent",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.controllers.nodes.shell.lifecycle:NodeLifecycle._update",
                    "self._to_unready.add(uid)",
                    "self._to_unready.update({uid} - vars(self).setdefault('_before', set()))\n"
                    "        self._before.add(uid)",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="a kubelet is silent, comes back, and is silent again: its pods stay endpoints",
        proof=(
            "tests/mutations/proofs/test_controllers.py"
            "::test_pods_are_set_to_not_ready_each_time_that_their_node_is_silent"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="owner-looked-up-in-informer-only",
            title="the garbage collector takes an owner that its informer does not have for absent",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.controllers.garbage.shell.collector:GarbageCollector._states",
                    "state = await self._live_state(reference, namespace)",
                    "pass",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the watch of owners lags behind that of their dependents: live objects are deleted",
        proof=(
            "tests/mutations/proofs/test_controllers.py"
            "::test_an_owner_that_only_the_api_server_has_is_not_absent"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="node-looked-up-in-informer-only",
            title="the pod garbage collector trusts its informer that a node is gone",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.controllers.garbage.shell.pod_gc:PodGarbageCollector._collect",
                    "gone = [name for name in missing if not await self._exists(name)]",
                    "gone = list(missing)",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the watch of nodes stalls for longer than the quarantine, and pods start on a new node",
        proof=(
            "tests/mutations/proofs/test_controllers.py"
            "::test_pods_of_a_node_that_only_the_api_server_has_stay"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="claim-looked-up-in-informer-only",
            title="a volume is released when the informer does not have its claim",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.controllers.volumes.shell.binder:VolumeController._claim",
                    "if claim is not None and claim.metadata.uid == reference.uid:",
                    "if claim is None or claim.metadata.uid == reference.uid:",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the watch of claims lags: the volume of a new claim is deleted",
        proof=(
            "tests/mutations/proofs/test_controllers.py"
            "::test_a_claim_that_only_the_api_server_has_keeps_its_volume"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="consumer-looked-up-in-informer-only",
            title="a claim loses the reservation of a pod that the informer does not have",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.controllers.devices.shell.claims:ResourceClaimController._is_live",
                    "if pod is None and reservations.is_pod(reference):",
                    "if pod is None and not reservations.is_pod(reference):",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the watch of pods lags behind that of claims: a running pod's devices are free",
        proof=(
            "tests/mutations/proofs/test_controllers.py::test_a_consumer_that_only_the_api_server_has_is_live"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="allowed-evictions-count-as-healthy",
            title="a pod whose eviction was allowed counts as healthy until it terminates",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.controllers.disruption.budget:status_of",
                    "and pod.metadata.name not in disrupted",
                    "and pod.metadata.uid not in disrupted",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the budget's status is computed between an eviction's two writes: one more is allowed",
        proof=(
            "tests/mutations/proofs/test_controllers.py"
            "::test_a_pod_whose_eviction_was_allowed_does_not_count_as_healthy"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="one-pod-too-few-in-rollout",
            title="a rollout shrinks the old set by one pod too many",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.controllers.deployments.rollout:_shrink_old",
                    "spare = sum(each.status.availableReplicas for each in [*old, new]) - least",
                    "spare = sum(each.status.availableReplicas for each in [*old, new]) - least + 1",
                ),
            ),
        ),
        component="controllers",
        disturbed=False,
        reached="a deployment with maxUnavailable is rolled out",
        proof="tests/controllers/deployments/test_rollout.py::test_a_rolling_update_step_by_step",
    ),
    Unseen(
        mutation=Mutation(
            name="own-replica-set-collides",
            title="a deployment takes a replica set of its own for another owner's",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.controllers.deployments.rollout:is_own",
                    "return deployment.metadata.uid in owners and same",
                    "return deployment.metadata.uid in owners and same and bool(found.status.replicas)",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the watch of replica sets lags behind a creation: the deployment makes a second set",
        proof=(
            "tests/mutations/proofs/test_controllers.py"
            "::test_a_replica_set_without_pods_may_be_the_deployments_own"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="terminating-endpoint-ready",
            title="an endpoint is ready while its pod terminates",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.controllers.endpoints.slices:_endpoint",
                    "(serving and not terminating)",
                    "serving",
                ),
            ),
        ),
        component="controllers",
        disturbed=False,
        reached="a pod of a Service is deleted with a grace period",
        proof="tests/controllers/endpoints/test_slices.py::test_conditions[Service-Pod-conditions1]",
    ),
    Unseen(
        mutation=Mutation(
            name="second-quota-not-counted",
            title="the first quota that has charged an object ends the search for others",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.controllers.quotas.shell.quotas:QuotaController._changed",
                    "if unless(found):\n            continue",
                    "if unless(found):\n            return",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="a namespace has an older and a newer quota, and a pod of between the two",
        proof=(
            "tests/mutations/proofs/test_controllers.py"
            "::test_a_quota_that_is_newer_than_an_object_is_counted_though_an_older_one_is_not"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="eviction-time-not-reset",
            title="the time of a NoExecute taint goes on after the taint was gone",
            module=_MODULE,
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
        reached="a kubelet is silent twice: its pods are evicted without their tolerationSeconds",
        proof=(
            "tests/mutations/proofs/test_controllers.py::test_a_toleration_begins_again_with_the_next_taint"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="older-owner-of-label-forgotten",
            title="a budget is not counted again when a pod's labels leave it",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.controllers.disruption.shell.disruption:Disruption._pod_updated",
                    "if old.metadata.labels != new.metadata.labels:",
                    "if old.metadata.labels.keys() != new.metadata.labels.keys():",
                ),
            ),
        ),
        component="controllers",
        disturbed=False,
        reached="a pod's label changes its value so that a budget does not select it any more",
        proof=(
            "tests/mutations/proofs/test_controllers.py"
            "::test_a_budget_is_counted_again_when_a_label_leaves_it"
        ),
    ),
    Unseen(
        mutation=Mutation(
            name="condition-renewed-at-each-sync",
            title="a Deployment's conditions are written again at each sync, with the time of the sync",
            module=_MODULE,
            edits=(
                Edit(
                    "nominee.controllers.deployments.progress:put",
                    "if (old.status, old.reason) == (new.status, new.reason):",
                    "if (old.status, old.reason) == (new.status, new.reason)"
                    " and old.lastUpdateTime == new.lastUpdateTime:",
                ),
            ),
        ),
        component="controllers",
        disturbed=False,
        reached="any Deployment: each write of its status leads to the next sync, once a second",
        proof="tests/controllers/deployments/test_rollout.py::test_first_rollout",
    ),
)
