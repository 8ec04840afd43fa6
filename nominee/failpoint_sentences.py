"""Each failpoint, and the state in which it is hit; `docs/failpoints.md` has the same rows."""

from __future__ import annotations

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    # apiserver
    "apiserver.write.before": (
        "a write is authenticated and authorized and has its seat; its body is not read"
    ),
    "apiserver.write.after": "a write is in etcd; the client has no response",
    "apiserver.storage.write.before": "a write is decided; its transaction is not sent to etcd",
    "apiserver.storage.write.after": (
        "etcd has answered the transaction; the API server does not know the result"
    ),
    "apiserver.storage.watch": "events are received from etcd; the watch cache does not have them yet",
    "apiserver.watch.send": "a batch of events is taken from the watch cache; it is not sent to the client",
    "apiserver.services.allocated": (
        "the addresses and node ports of a Service are allocated; the Service is not written"
    ),
    "apiserver.services.release": "a Service is deleted; its addresses and node ports are not released",
    # scheduler
    "scheduler.cycle.before": (
        "a pod (the first one of a pod group) is popped from the queue; its scheduling cycle has not begun"
    ),
    "scheduler.assume.after": (
        "the pod is assumed on its node, after Reserve and Permit; its binding cycle begins"
    ),
    "scheduler.nominate.before": (
        "the pod will wait on Permit or in PreBind, and NominatedNodeNameForExpectation is on; its node is "
        "not written to `status.nominatedNodeName`"
    ),
    "scheduler.nominate.after": "the write of `status.nominatedNodeName` has ended, also if it failed",
    "scheduler.permit.wait.before": "a Permit plugin returned Wait; the binding cycle has not begun to wait",
    "scheduler.permit.wait.after": "the waiting pod is allowed; PreBind has not begun",
    "scheduler.prebind.before": "PreBind plugins have work for the pod; none has run",
    "scheduler.prebind.during": "hit as the PreBind plugins start, beside them; an error cancels them",
    "scheduler.prebind.after": "all PreBind plugins have succeeded; the pod is not bound",
    "scheduler.volumes.written": (
        "VolumeBinding has written the volumes and claims; it does not wait for them yet"
    ),
    "scheduler.claims.written": "DynamicResources has written the allocation and reservation of one claim",
    "scheduler.bind.before": "no Bind plugin or extender was called",
    "scheduler.bind.after": "the pod is bound; no event Scheduled is recorded, PostBind has not run",
    "scheduler.unreserve.before": (
        "the binding cycle failed; the pod is still assumed, Unreserve has not run; an error has no effect"
    ),
    "scheduler.status.before": "a scheduling attempt failed; PodScheduled and the nomination are not written",
    "scheduler.status.after": "PodScheduled and the nomination of the failed attempt are written",
    "scheduler.preempt.before": "victims are chosen; lower nominations are not cleared, no victim is evicted",
    "scheduler.preempt.victim.marked": "a victim has the condition DisruptionTarget; it is not deleted",
    "scheduler.preempt.victim.after": (
        "a victim is deleted, or rejected while it waited; no event Preempted is recorded"
    ),
    # kubelet
    "kubelet.register.before": "the Node object is not created, or not updated if it exists",
    "kubelet.register.after": "the Node object is written; the node does not run pods yet",
    "kubelet.node-status.before": "the status of the node has changed or is due; it is not written",
    "kubelet.lease.before": "the node's lease is due; it is not renewed",
    "kubelet.admit.before": "a new pod has arrived; it is not admitted. All pods of the process wait",
    "kubelet.checkpoint.before": "the checkpoint has changed; the file is not written",
    "kubelet.checkpoint.after": "the checkpoint file is written",
    "kubelet.start.before": "the pod is admitted and its allocation saved; its sandbox is not created",
    "kubelet.start.after": "containers of the pod are started and saved; the status does not show them",
    "kubelet.actuate.before": "a resize is allocated; the first call of its actuation is not made",
    "kubelet.actuate.between": "some calls of an actuation are made; the next one is not",
    "kubelet.actuate.after": "the last call of an actuation is made; the status does not show it",
    "kubelet.status.before": "the checkpoint is saved; the pod's status is not written",
    "kubelet.status.after": "the pod's status is written",
    "kubelet.terminate.before": "the pod must stop; its containers have no signal",
    "kubelet.terminate.after": "the pod's containers are stopped; the status does not show it",
    "kubelet.delete.before": "the last status of a deleted pod is written; the pod object is not deleted",
    # controllers
    "controllers.bind_volume.before": (
        "the binder has decided on a write (claim, volume or status); it is not made"
    ),
    "controllers.bind_volume.after": "the binder's write is made; no event is recorded",
    "controllers.provision.before": (
        "a claim needs a volume; its provisioning, with the class's delay, has not begun"
    ),
    "controllers.provision.during": "the delay is over; the volume is not created",
    "controllers.provision.after": "the volume is created; the claim is not bound",
    "controllers.deployment.create.before": "a Deployment needs a new ReplicaSet; it is not created",
    "controllers.deployment.create.after": "the new ReplicaSet is created; no event is recorded",
    "controllers.deployment.scale.after": (
        "a ReplicaSet is updated (its size or annotations); no event is recorded"
    ),
    "controllers.replica_set.create.before": "a ReplicaSet needs a pod; it is not created",
    "controllers.replica_set.create.after": "the pod is created; no event is recorded",
    "controllers.node_unknown.before": (
        "a kubelet is silent; the conditions of its node are not set to Unknown"
    ),
    "controllers.taint_node.before": "the taints of a node must change; they are not written",
    "controllers.taint_eviction.before": "a pod must leave a tainted node; it is neither marked nor deleted",
    "controllers.device_taint_eviction.before": (
        "a pod must leave a tainted device; it is neither marked nor deleted"
    ),
    "controllers.pod_gc.mark.before": "a pod is garbage; its phase is not set to Failed",
    "controllers.pod_gc.delete.before": "a pod is garbage, and marked if it had to be; it is not deleted",
    "controllers.namespace.finalize.before": "a terminating namespace is empty; its finalizer is not removed",
    "controllers.garbage.delete.before": (
        "the owners of an object are gone, or wait for its deletion; it is not deleted"
    ),
    "controllers.garbage.orphan.before": (
        "an object is deleted with orphaning; its dependents still refer to it"
    ),
    "controllers.endpoints.write.before": "the Endpoints of a Service must change; they are not written",
    "controllers.endpoint_slices.write.before": (
        "EndpointSlices of a Service, or those that mirror its Endpoints, must change; none is written"
    ),
    "controllers.certificates.approve.before": "a CertificateSigningRequest may be approved; it is not",
    "controllers.certificates.sign.before": (
        "the certificate, or the condition Failed, is made; it is not written"
    ),
    # autoscaler
    "autoscaler.loop.before": "a loop begins; it has not read the objects of the cluster",
    "autoscaler.scaleup.before": "a node group must grow; the cloud provider is not called",
    "autoscaler.scaleup.after": (
        "the cloud provider has increased the node group; the autoscaler has not noted it"
    ),
    "autoscaler.scaledown.taint.before": "a node must be deleted; it has no ToBeDeleted taint",
    "autoscaler.scaledown.taint.after": "the node has the ToBeDeleted taint",
    "autoscaler.scaledown.recheck.before": "the node of a deletion is not read again from the API server",
    "autoscaler.scaledown.recheck.after": "the node is read again; nothing is decided with it",
    "autoscaler.scaledown.evict.before": "a pod must leave the node; it is not evicted",
    "autoscaler.scaledown.evict.after": "the eviction of the pod is accepted",
    "autoscaler.scaledown.untaint.before": (
        "the deletion of a node failed, or an earlier autoscaler began it; the ToBeDeleted taint is not "
        "removed"
    ),
    "autoscaler.delete.before": "nodes are ready to be deleted; the cloud provider is not called",
    "autoscaler.delete.after": (
        "the cloud provider has accepted the deletion; the autoscaler has not noted it"
    ),
    # cloud
    "cloud.increase.before": "the cloud provider has a call to grow a group; the target size is unchanged",
    "cloud.increase.after": "the target size is increased; the caller has no answer",
    "cloud.delete.before": "the cloud provider has a call to delete nodes; no instance is deleted",
    "cloud.delete.after": "the instances are being deleted; the caller has no answer",
    "cloud.node-delete.before": "an instance does not exist any more; its Node object is not deleted",
}
