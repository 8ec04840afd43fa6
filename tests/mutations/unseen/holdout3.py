"""Mutations that are kept apart: the third set, by an author who did not know what the lab checks."""

from __future__ import annotations

from typing import Final

from tests.mutations.catalogue import Mutation
from tests.mutations.patch import Edit
from tests.mutations.unseen.unseen import Unseen

_PROOFS: Final = "tests/mutations/proofs/test_holdout3.py"
_APISERVER: Final = "nominee.apiserver"
_AUTOSCALER: Final = "nominee.autoscaler"
_CONTROLLERS: Final = "nominee.controllers"
_KUBELET: Final = "nominee.kubelet"
_SCHEDULER: Final = "nominee.scheduler"

HOLDOUT3: Final[tuple[Unseen, ...]] = (
    # --- scheduler ---
    Unseen(
        mutation=Mutation(
            name="affinity-without-partner-satisfied",
            title="a pod goes anywhere as long as no pod matches its required affinity, which is not its own",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.plugins.inter_pod_affinity.plugin:InterPodAffinity._masks",
                    "bool(found.required) and found.first_of_its_kind",
                    "bool(found.required) and not found.affinity.domains",
                ),
                Edit(
                    "nominee.scheduler.plugins.inter_pod_affinity.plugin:_is_near_matches",
                    "return together or found.first_of_its_kind",
                    "return together or not found.affinity.domains",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="a pod requires to be in the zone of pods of another application, of which none runs yet: it"
        " is bound to any node at once and stays there, instead of waiting for the first of them",
        proof=f"{_PROOFS}::test_affinity_to_pods_that_do_not_run_is_not_satisfied",
    ),
    Unseen(
        mutation=Mutation(
            name="shared-volume-attached-again",
            title="a volume that is attached to the node already counts once more for the next pod",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.plugins.node_volume_limits.plugin:NodeVolumeLimits.filter",
                    "for volume in new - attached)",
                    "for volume in new)",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="two pods share a claim, and the only node that they may use has reached the limit of its CSI"
        " driver: the second pod stays Pending (exceed max volume count) although nothing is to be attached",
        proof=f"{_PROOFS}::test_a_volume_that_is_attached_takes_no_more_room",
    ),
    Unseen(
        mutation=Mutation(
            name="removed-domain-requeues-no-pod",
            title="a deleted node requeues no pod that waits for a spread constraint",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.plugins.pod_topology_spread.plugin:PodTopologySpread._after_node_change",
                    "useful = counted or counts",
                    "useful = counts",
                ),
            ),
        ),
        component="scheduler",
        disturbed=False,
        reached="a pod waits since the emptiest zone has only a full node, and that node is deleted: the"
        " constraint allows the other zones now, but the pod stays Pending (up to five minutes)",
        proof=f"{_PROOFS}::test_the_end_of_the_emptiest_domain_may_help",
    ),
    Unseen(
        mutation=Mutation(
            name="marked-victim-not-deleted",
            title="a victim that has its condition DisruptionTarget already is not deleted",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.preemption.evictions:Evictions._evict",
                    "if patch:\n                yield from _patch_status(",
                    "if not patch:\n                return\n"
                    "            else:\n                yield from _patch_status(",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="the scheduler is killed (or the call is refused) between the marking of a victim and its"
        " deletion: when it chooses this victim again it deletes nothing, and the preemptor is Pending for"
        " minutes, until a controller finds the condition to be stale",
        proof=f"{_PROOFS}::test_a_victim_that_was_marked_before_is_deleted",
    ),
    Unseen(
        mutation=Mutation(
            name="nominations-not-read-at-start",
            title="a pod that is new to the queue has no nomination, whatever its status says",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.queue.scheduling_queue:PrioritySchedulingQueue._to_active",
                    "if event is UNSCHEDULED_ADD or event is UNSCHEDULED_UPDATE:",
                    "if event is UNSCHEDULED_UPDATE:",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="the scheduler is restarted while a pod waits for its victims, which end meanwhile: their"
        " room goes to a pod of the same priority that is tried before it, and the preemptor evicts again",
        proof=f"{_PROOFS}::test_a_nomination_of_an_earlier_process_counts",
    ),
    Unseen(
        mutation=Mutation(
            name="selected-node-overruled",
            title="a claim that was given to a node goes to any node for which its class makes volumes",
            module=_SCHEDULER,
            edits=(
                Edit(
                    "nominee.scheduler.plugins.volume_binding.binder:VolumeBinder._find_delayed",
                    "elif selected != node.name:",
                    "elif selected != node.name and not self.can_provision(claim, node):",
                ),
                Edit(
                    "nominee.scheduler.plugins.volume_binding.plugin:VolumeBinding._delayed_mask",
                    "return pinned if provisioned is None else pinned & provisioned",
                    "return None if provisioned is None else pinned | provisioned",
                ),
            ),
        ),
        component="scheduler",
        disturbed=True,
        reached="the scheduler is killed (or PreBind fails) after it has named the node on the claim, and"
        " another node scores better in the next attempt: the volume is made for the first node, the pod is"
        " reserved on the second, and its binding fails",
        proof=f"{_PROOFS}::test_a_claim_that_has_its_node_pins_the_pod",
    ),
    # --- kubelet ---
    Unseen(
        mutation=Mutation(
            name="deadline-armed-once",
            title="the time limit of a pod stays as it was first, whatever the spec says later",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.pod_sync.run_steps:check_deadline",
                    "if sync.deadline_seconds != seconds:",
                    "if not sync.deadline_seconds:",
                ),
            ),
        ),
        component="kubelet",
        disturbed=False,
        reached="a user lowers activeDeadlineSeconds of a pod that runs: it runs on until the former limit,"
        " instead of failing with DeadlineExceeded",
        proof=f"{_PROOFS}::test_a_lowered_deadline_counts",
    ),
    Unseen(
        mutation=Mutation(
            name="status-written-by-name",
            title="the kubelet patches the status of the pod of a name, and not just the one that it runs",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.pod_sync.api_steps:_status_patch",
                    '{"metadata": {"uid": base.metadata.uid}, "status": change}',
                    '{"status": change}',
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="a pod is deleted without grace and made again under its name while the kubelet's watch is"
        " delayed, or its status call waits: the new pod, without a node, is shown as Running, with the"
        " address and the containers of the old one",
        proof=f"{_PROOFS}::test_a_status_is_for_one_pod_only",
    ),
    Unseen(
        mutation=Mutation(
            name="admitted-beside-none-of-the-batch",
            title="pods that arrive together are admitted beside those from before, not beside each other",
            module=_KUBELET,
            edits=(
                Edit(
                    "nominee.kubelet.allocation.manager:on_pods_added",
                    "for record in records:\n        others = node.active_pods()",
                    "others = node.active_pods()\n    for record in records:",
                ),
            ),
        ),
        component="kubelet",
        disturbed=True,
        reached="pods that name the node themselves and do not fit beside each other are made while the"
        " kubelet is down or its watch delayed: all of them run, where one must fail with OutOfcpu",
        proof=f"{_PROOFS}::test_pods_that_arrive_together_share_the_room",
    ),
    # --- autoscaler ---
    Unseen(
        mutation=Mutation(
            name="waste-of-one-node",
            title="least-waste compares the requests of all new nodes' pods with the capacity of one node",
            module=_AUTOSCALER,
            edits=(
                Edit(
                    "nominee.autoscaler.planning.scale_up.expander:_wasted",
                    "(capacity[name]) * option.node_count",
                    "(capacity[name])",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=False,
        reached="pending pods need several nodes of a small group or one of a large one that they fill"
        " better: the small group grows, since its waste seems to be negative",
        proof=f"{_PROOFS}::test_the_waste_of_several_nodes_is_that_of_all",
    ),
    Unseen(
        mutation=Mutation(
            name="drain-grants-no-grace",
            title="evicted pods must have ended within half a minute, whatever grace a drain allows them",
            module=_AUTOSCALER,
            edits=(
                Edit(
                    "nominee.autoscaler.actuation.node_deletion:NodeDeletion._evict",
                    "self._clock.monotonic() + grace + EVICTION_HEADROOM_SECONDS",
                    "self._clock.monotonic() + EVICTION_HEADROOM_SECONDS",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=False,
        reached="an unneeded node has a pod that takes a minute to stop: the drain fails (pods remaining"
        " after timeout), the node stays, and its pod was evicted in vain",
        proof=f"{_PROOFS}::test_a_drain_waits_for_the_grace_periods",
    ),
    Unseen(
        mutation=Mutation(
            name="gone-pod-fails-drain",
            title="a pod that is gone when its eviction comes counts as one that cannot be evicted",
            module=_AUTOSCALER,
            edits=(
                Edit(
                    "nominee.autoscaler.actuation.eviction:evict_pod",
                    "if failure is None or failure.not_found:",
                    "if failure is None:",
                ),
            ),
        ),
        component="autoscaler",
        disturbed=True,
        reached="another client deletes a pod of a node between the last check and the eviction, or an"
        " eviction that was done gets no answer: it is tried for two minutes, the drain fails, and the node"
        " stays",
        proof=f"{_PROOFS}::test_a_pod_that_is_gone_need_not_be_evicted",
    ),
    # --- controllers ---
    Unseen(
        mutation=Mutation(
            name="claim-of-former-pod-wakes-no-set",
            title="the end of a claim that a pod owned, and no set, wakes no stateful set",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.stateful_sets.shell.stateful_sets:StatefulSetController._claim_gone",
                    'if owner.kind == "Pod":\n            name, _ = parent_and_ordinal(owner.name)',
                    'if owner.kind == "StatefulSet":\n            name = owner.name',
                ),
            ),
        ),
        component="controllers",
        disturbed=False,
        reached="a StatefulSet with whenScaled=Delete is scaled down and soon up again: it waits until the"
        " claim of the former pod is collected, and then for ever: the pod is not created",
        proof=f"{_PROOFS}::test_the_end_of_a_claim_wakes_the_set_of_its_pod",
    ),
    Unseen(
        mutation=Mutation(
            name="scaled-down-by-half-of-the-metrics",
            title="an autoscaler scales down though one of its metrics is unknown",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.horizontal_pod_autoscalers.autoscaling:_by_metrics",
                    "len(failures) >= len(spec.metrics) or (failures and replicas < current)",
                    "len(failures) >= len(spec.metrics)",
                ),
            ),
        ),
        component="controllers",
        disturbed=False,
        reached="a HorizontalPodAutoscaler has cpu and a second metric that cannot be read (an external one,"
        " or of a container that the pods lack), and cpu is low: the target loses replicas that the other"
        " metric may need",
        proof=f"{_PROOFS}::test_nothing_is_scaled_down_while_a_metric_is_unknown",
    ),
    Unseen(
        mutation=Mutation(
            name="failed-eviction-starts-time-again",
            title="a pod whose eviction from a tainted node failed may stay for its whole time once more",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.nodes.shell.eviction:TaintEviction.reconcile",
                    "await self._evict(pod)\n    self._due.pop(uid, None)",
                    "self._due.pop(uid, None)\n    await self._evict(pod)",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the time of a pod on an unreachable node is over when the API server is away, or refuses the"
        " write: the pod is not evicted within the second that the retry takes, but tolerationSeconds (five"
        " minutes) later, and its replacement comes as late",
        proof=f"{_PROOFS}::test_an_eviction_that_failed_is_tried_again_at_once",
    ),
    Unseen(
        mutation=Mutation(
            name="endpoint-of-unseen-node-forgotten",
            title="a Service is not looked at again that has a pod on a node which does not exist here yet",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.controllers.endpoints.shell.slices:EndpointSliceController.reconcile",
                    "return NODE_MISSING_SECONDS if work.without_node else None",
                    "return None",
                ),
            ),
        ),
        component="controllers",
        disturbed=True,
        reached="the controllers' watch of nodes is delayed, and the pod of a Service becomes ready on a new"
        " node: its address is in no EndpointSlice, also when the node is seen, until another change of the"
        " Service's pods",
        proof=f"{_PROOFS}::test_a_pod_gets_its_endpoint_once_its_node_is_seen",
    ),
    # --- apiserver ---
    Unseen(
        mutation=Mutation(
            name="node-ports-kept-by-cluster-ip",
            title="a Service that has node ports no longer keeps those that it had",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.registry.services.node_ports:concerns",
                    "return new.type in _ON_NODES or (old is not None and old.type in _ON_NODES)",
                    "return new.type in _ON_NODES",
                ),
            ),
        ),
        component="apiserver",
        disturbed=False,
        reached="a Service of type NodePort with port 30080 becomes a ClusterIP, and another one asks for"
        " that port: it is refused (provided port is already allocated), for minutes until the repair",
        proof=f"{_PROOFS}::test_a_service_that_leaves_the_nodes_releases_its_ports",
    ),
    Unseen(
        mutation=Mutation(
            name="address-released-after-lost-answer",
            title="a write whose outcome is unknown releases the address and the ports that it took",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.registry.services.allocation:Claim.finish",
                    "elif isinstance(error, StatusError) and error.code < 500:",
                    "else:",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="etcd stores a new Service, and its answer is lost, or comes after the request's time: the"
        " Service exists, its clusterIP and node port are free, and the next Service may get them, too",
        proof=f"{_PROOFS}::test_a_write_of_unknown_outcome_releases_nothing",
    ),
    Unseen(
        mutation=Mutation(
            name="renewed-server-lease-never-ends",
            title="the lease of an API server has no time to live any more once it was renewed",
            module=_APISERVER,
            edits=(
                Edit(
                    "nominee.apiserver.process.server_leases:ServerLeases.renew",
                    "each.key, data, expected_revision=revision, lease_seconds=LEASE_SECONDS",
                    "each.key, data, expected_revision=revision",
                ),
            ),
        ),
        component="apiserver",
        disturbed=True,
        reached="one of several API servers is killed after it has run for ten seconds: its address stays in"
        " the endpoints of the Service kubernetes for ever, and clients are sent to it",
        proof=f"{_PROOFS}::test_a_renewed_lease_of_a_server_ends_by_itself",
    ),
    # --- machinery ---
    Unseen(
        mutation=Mutation(
            name="released-volume-bound-by-name",
            title="a volume is bound to any claim that has the name of the one it was made for",
            module=_CONTROLLERS,
            edits=(
                Edit(
                    "nominee.machinery.scheduling.volume_matching:is_bound_to",
                    "return not reference.uid or reference.uid == claim.metadata.uid",
                    "return True",
                ),
            ),
        ),
        component="machinery",
        disturbed=False,
        reached="a claim whose volume has the reclaim policy Retain is deleted and made again: the new claim"
        " gets the released volume with the former data, instead of a new one, and the volume changes"
        " between Bound and Released",
        proof=f"{_PROOFS}::test_a_released_volume_is_not_for_the_next_claim_of_the_name",
    ),
)
