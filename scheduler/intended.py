"""Nominations that are decided and that the watch has not shown yet.

A nomination counts from the moment it is decided; its write is a task, and the watch shows it later still. An
event from in between carries an older nomination, which must not replace the newer one, neither in the
nominator nor in the pod that is tried next. So until the watch has come to the write's own revision, the pod
is shown with what was decided.
Source: KEP-5229; kube-scheduler 1.36, API dispatcher (SyncObject), which does this to whole statuses.
"""

from __future__ import annotations

from dataclasses import dataclass

from machinery.pb import core


@dataclass(slots=True)
class _Intention:
    node_name: str  # "" clears
    number: int
    revision: int | None = None  # of the object once it is written


class IntendedNominations:
    """By pod; at most one each, the latest."""

    def __init__(self) -> None:
        self._by_uid: dict[str, _Intention] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._by_uid)

    def decide(self, uid: str, node_name: str) -> int:
        """From now on the pod is nominated to the node ("": to none). The number is for `written`."""
        self._count += 1
        self._by_uid[uid] = _Intention(node_name, self._count)
        return self._count

    def written(self, uid: str, number: int, revision: int | None) -> None:
        """That decision is in the object since `revision`; None: it could not be written, and is dropped."""
        intention = self._by_uid.get(uid)
        if intention is None or intention.number != number:
            return  # a later decision counts
        if revision is None:
            del self._by_uid[uid]
        else:
            intention.revision = revision

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._by_uid.pop(uid, None)

    def see(self, pod: core.Pod) -> core.Pod:
        """The pod that the watch shows, with the nomination that counts: a copy only where they differ."""
        intention = self._by_uid.get(pod.metadata.uid)
        if intention is None:
            return pod
        if intention.revision is not None and revision_of(pod) >= intention.revision:
            del self._by_uid[pod.metadata.uid]
            return pod
        if pod.status.nominatedNodeName == intention.node_name:
            return pod
        copy = core.Pod()
        copy.CopyFrom(pod)
        if intention.node_name:
            copy.status.nominatedNodeName = intention.node_name
        else:
            copy.status.ClearField("nominatedNodeName")
        return copy


def revision_of(pod: core.Pod) -> int:
    """The resourceVersion as a number, 0 if it is none."""
    version = pod.metadata.resourceVersion
    return int(version) if version.isdigit() else 0
