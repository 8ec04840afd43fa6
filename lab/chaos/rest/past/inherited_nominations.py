"""The nominations that may have been meant for a former pod of the name. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

from nominee.lab.chaos.rest.past.pod_writes import pod_writes
from nominee.lab.history.invariants.checking.former_objects import FormerObjects
from nominee.lab.history.invariants.checking.served_time import ServedTime
from nominee.lab.history.revision import Revision


def inherited_nominations(history: Iterable[Revision]) -> frozenset[str]:
    """Return the uids of the pods that were nominated shortly after another pod of their name was deleted.

    `FormerObjects` says why. An attempt that was made before the write arrived leaves the nomination alone;
    the next one clears it if it helps no more.
    """
    former, served_time = FormerObjects(), ServedTime()
    nominated: dict[str, str] = {}
    """The nodes, by uid, of the pods whose nomination is such a one."""

    def observed() -> Iterable[Revision]:
        for revision in history:
            served_time.observe(revision)
            former.observe(revision)
            yield revision

    for revision, before, pod in pod_writes(observed()):
        node, uid = pod.status.nominatedNodeName, pod.metadata.uid
        is_new = node and (before is None or before.status.nominatedNodeName != node)
        if is_new and former.may_reach(revision, served_time):
            nominated[uid] = node
        elif nominated.get(uid) != node:
            nominated.pop(uid, None)
    return frozenset(nominated)
