"""Keep nominations that are decided and that the watch has not shown yet.

A nomination counts from the moment it is decided; its write is a task, and the watch shows it later still.
An event from in between carries an older nomination, which must not replace the newer one, neither in the
nominator nor in the pod that is tried next. So until the watch has reached the revision of the write, the
pod is shown with the decided nomination.

Source: KEP-5229; kube-scheduler 1.36, API dispatcher (SyncObject), which does this to whole statuses.
"""

from __future__ import annotations

from dataclasses import dataclass

from nominee.machinery.api.objects import resource_version_of
from nominee.machinery.api.pb import core


@dataclass(slots=True)
class _Pending:
    node_name: str  # "" clears the nomination
    number: int  # of the call that writes it
    revision: int | None = None  # of the object once it is written


class PendingNominations:
    """The latest decided nomination of each pod, by uid."""

    def __init__(self) -> None:
        self._by_uid: dict[str, _Pending] = {}

    def __len__(self) -> int:
        return len(self._by_uid)

    def decide(self, uid: str, node_name: str, number: int) -> None:
        """Nominate the pod to the node from now on ("": to none); `number` is that of the writing call."""
        self._by_uid[uid] = _Pending(node_name, number)

    def unwritten(self) -> dict[str, int]:
        """Return the numbers of the calls that are to write nominations, by uid."""
        return {uid: pending.number for uid, pending in self._by_uid.items() if pending.revision is None}

    def written(self, uid: str, number: int, revision: int | None) -> None:
        """Note that the object has the decision since `revision`; None: it could not be written.

        A decision that could not be written does not count any more.
        """
        pending = self._by_uid.get(uid)
        if pending is None or pending.number != number:
            return  # a later decision counts
        if revision is None:
            del self._by_uid[uid]
        else:
            pending.revision = revision

    def forget(self, uid: str) -> None:
        """Drop the nomination of a pod that does not exist any more."""
        self._by_uid.pop(uid, None)

    def apply(self, pod: core.Pod) -> core.Pod:
        """Return the watched pod with its pending nomination; copy it only if the nominations differ."""
        pending = self._by_uid.get(pod.metadata.uid)
        if pending is None:
            return pod
        if pending.revision is not None and resource_version_of(pod) >= pending.revision:
            del self._by_uid[pod.metadata.uid]
            return pod
        if pod.status.nominatedNodeName == pending.node_name:
            return pod
        copy = core.Pod()
        copy.CopyFrom(pod)
        if pending.node_name:
            copy.status.nominatedNodeName = pending.node_name
        else:
            copy.status.ClearField("nominatedNodeName")
        return copy
