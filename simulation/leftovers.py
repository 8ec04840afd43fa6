"""Find entries that a simulated process need not have: a restart would free them, or their objects are gone.

An entry that no code removes is found by this without a rule about it, before it does harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from nominee.simulation.containers import containers

_COPIES: Final = (
    "nominee.apiserver.objects.",
    "nominee.autoscaler.planning.snapshot.",
    "nominee.machinery.client.watches.informer._Index.",
    "nominee.scheduler.framework.cluster.label_groups.",
    "nominee.scheduler.framework.cluster.snapshot.",
    "nominee.scheduler.plugins.inter_pod_affinity.pod_groups.",
    "nominee.scheduler.plugins.pod_topology_spread.",
    "nominee.scheduler.plugins.volume_binding.assumptions.",
)
"""Modules and classes: copies that are made again before they are used, and indexes."""
_LOGS: Final = (
    "nominee.apiserver.chain.metrics.",
    "nominee.apiserver.flow_control.",
    "nominee.autoscaler.shell.metrics.",
    "nominee.controllers.endpoints.pending_writes.",
    "nominee.controllers.shell.metrics.",
    "nominee.machinery.events.",
    "nominee.machinery.runtime.faults.",
    "nominee.scheduler.queue.keyed_heap.KeyedHeap._heap.",
    "nominee.scheduler.shell.attempt.attempt_log.",
    "nominee.scheduler.shell.metrics.",
)
"""Logs with limits of their own, timers that end, and entries that are removed when they are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """The entries of the containers of a component's process, by class and attribute.

    `entries`: of all containers that a restarted process fills again. `of_gone`: of those, and of containers
    within them, the entries that are named after objects that are gone.
    """

    component: str
    entries: Counter[str]
    of_gone: Counter[str]


def holdings(component: str, roots: Iterable[object], gone: Set[str]) -> Holdings:
    """Return the entries that the tasks of a process can reach.

    `gone` has uids and `namespace/name`. An entry has the name of its key, or its own in a list or set.
    """
    entries, of_gone = Counter[str](), Counter[str]()
    for place, container in containers(roots, (*_COPIES, *_LOGS)):
        if place.is_whole and not place.is_value:
            entries[place.full] += len(container)
        if gone:
            of_gone[place.name] += sum(not gone.isdisjoint(_names(each)) for each in container)
    return Holdings(component=component, entries=+entries, of_gone=+of_gone)


def _names(entry: object) -> Iterator[str]:
    """Yield the texts by which an entry may name an object."""
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, tuple):
        texts = [each for each in entry if isinstance(each, str)]
        yield from texts
        yield from map("/".join, pairwise(texts))
