"""How far the clocks of kubelets are ahead, by the leases that they renew."""

from __future__ import annotations

from nominee.lab.history.invariants.checking.node_leases import NAMESPACE
from nominee.lab.history.invariants.checking.pods import finished_at
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import LEASE
from nominee.machinery.api.pb import core
from nominee.machinery.runtime.clock import from_time


class NodeClocks:
    """Takes the revisions of leases; one is decoded when a pod's status has a time of the future."""

    def __init__(self) -> None:
        self._leases: dict[str, Revision] = {}
        """The newest renewal of each node's lease."""

    def observe(self, revision: Revision) -> None:
        """Note the renewal of a node's lease."""
        if revision.kind is LEASE and revision.namespace == NAMESPACE and revision.value is not None:
            self._leases[revision.name] = revision

    def finished_at(self, pod: core.Pod, reported: float) -> float:
        """Return when the last container of the pod ended, as `finished_at`, by the time of the history.

        An end after its report shows that the clock of the kubelet is ahead; the lease shows how far.
        """
        finished = finished_at(pod)
        lease = self._leases.get(pod.spec.nodeName)
        renewed = None if lease is None else lease.after(LEASE)
        if finished <= reported or lease is None or renewed is None:
            return finished
        return finished - max(from_time(renewed.spec.renewTime) - lease.time, 0.0)
