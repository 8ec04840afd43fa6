"""Record the last attempts at each pod: why it waits, or why it is where it is. In memory and bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, cast

from cachetools import LRUCache

from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.runtime.clock import rfc3339_micro
from nominee.scheduler.attempts.pod import Failed, Scheduled
from nominee.scheduler.explanation import format as output
from nominee.scheduler.framework.scheduling.diagnosis import FitError
from nominee.scheduler.framework.types import PodInfo

PODS_MAX: Final = 2000  # those tried last
ATTEMPTS_MAX: Final = 5  # of one pod
NODES_NAMED_MAX: Final = 10  # of each reason


@dataclass(frozen=True, slots=True)
class Record:
    """One attempt. `at`: seconds since the epoch; `evaluated` and `feasible`: numbers of nodes."""

    at: float
    result: output.Result
    node: str = ""  # chosen, or nominated for preemption
    message: str = ""
    evaluated: int = 0
    feasible: int = 0
    victims: tuple[str, ...] = ()
    rejections: Sequence[output.AttemptRejection] = ()

    def document(self) -> output.Attempt:
        """Return it in the output format."""
        return {
            "time": rfc3339_micro(self.at),
            "result": self.result,
            "node": self.node,
            "message": self.message,
            "evaluatedNodes": self.evaluated,
            "feasibleNodes": self.feasible,
            "victims": list(self.victims),
            "rejections": list(self.rejections),
        }


class AttemptLog:
    """Records by pod; the pod that was tried longest ago is dropped first.

    Found by name, and each of one uid: the log of a recreated pod (of a StatefulSet) is empty at first.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._by_pod: LRUCache[ObjectKey, tuple[str, deque[Record]]] = LRUCache(PODS_MAX)

    def decided(self, pod: PodInfo, outcome: Scheduled | Failed) -> None:
        """Record the outcome of a scheduling cycle; to be called before the snapshot changes again."""
        if isinstance(outcome, Scheduled):
            record = Record(
                self._now(), "Scheduled", outcome.node_name, "", outcome.evaluated, outcome.feasible
            )
        else:
            record = self._failed(outcome)
        self._add(pod, record)

    def binding_failed(self, pod: PodInfo, failed: Failed) -> None:
        """Record a pod that had a node and could not be bound."""
        self._add(pod, self._failed(failed))

    def of(self, key: ObjectKey) -> list[Record]:
        """Return the pod's records, the newest last."""
        _, records = self._by_pod.get(key, ("", ()))
        return list(records)

    def _failed(self, failed: Failed) -> Record:
        node = ""
        victims: tuple[str, ...] = ()
        result = failed.post_filter
        if result is not None and result.candidate is not None:
            node = result.candidate.node
            victims = tuple(str(victim.key) for victim in result.candidate.victims)
        rejections = [] if failed.fit_error is None else rejections_of(failed.fit_error)
        return Record(
            self._now(), failed.reason.value, node, failed.message, victims=victims, rejections=rejections
        )

    def _add(self, pod: PodInfo, record: Record) -> None:
        uid, records = self._by_pod.get(pod.key, ("", None))
        if records is None or uid != pod.uid:
            records = deque(maxlen=ATTEMPTS_MAX)
            self._by_pod[pod.key] = pod.uid, records
        records.append(record)


def rejections_of(error: FitError) -> list[output.AttemptRejection]:
    """Return why nodes were rejected, the most frequent reasons first."""
    found: dict[tuple[str, tuple[str, ...], str], output.AttemptRejection] = {}
    for status, count, nodes in error.diagnosis.statuses.groups(NODES_NAMED_MAX):
        key = (status.plugin, status.reasons, status.code.name)
        if key not in found:
            found[key] = {
                "plugin": status.plugin,
                "reasons": list(status.reasons),
                "code": cast("output.Code", status.code.name),
                "nodeCount": 0,
                "nodes": [],
            }
        found[key]["nodeCount"] += count
        found[key]["nodes"] = [*found[key]["nodes"], *nodes][:NODES_NAMED_MAX]
    return sorted(found.values(), key=lambda rejection: -rejection["nodeCount"])
