"""Entries that processes need not have: of objects that are gone, or that a restart frees. No I/O.

A process knows at rest what one knows that has just read the objects. An entry more was forgotten: an
allocation, a time, a reservation that may do harm later, as when an object of this name comes again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from nominee.lab.chaos.rest.scheduling import SCHEDULER
from nominee.lab.chaos.rest.state import Finding

if TYPE_CHECKING:
    from nominee.simulation.leftovers import Holdings

_AUTOSCALERS: Final = (
    "nominee.controllers.horizontal_pod_autoscalers.shell.horizontal_pod_autoscalers"
    ".HorizontalPodAutoscalerController"
)
_HISTORIES: Final = (
    "nominee.apiserver.admission.chain.",
    "nominee.apiserver.cache.kind_cache.",
    "nominee.apiserver.chain.",
    "nominee.apiserver.fronts.",
    "nominee.apiserver.registry.services.repair.",
    "nominee.apiserver.storage.leases.",
    "nominee.autoscaler.planning.node_groups.backoff.",
    "nominee.autoscaler.planning.node_groups.cluster_state.ClusterStateRegistry._scale_downs.",
    "nominee.autoscaler.planning.scale_down.cooldowns.",
    "nominee.autoscaler.planning.scale_down.planner.ScaleDownPlanner.utilization.",
    "nominee.autoscaler.planning.scale_up.plan.ScaleUpPlan.remaining.",
    "nominee.autoscaler.result.",
    "nominee.autoscaler.state.AutoscalerState.doubtful_taints.",
    "nominee.controllers.daemon_sets.",
    "nominee.controllers.devices.shell.eviction.DeviceTaintEviction._tainted.",
    "nominee.controllers.endpoints.trigger_time.TriggerTimes.",
    "nominee.controllers.garbage.pod_gc.Quarantine.",
    "nominee.controllers.horizontal_pod_autoscalers.normalization.",
    f"{_AUTOSCALERS}._histories.",
    f"{_AUTOSCALERS}._selectors.",
    "nominee.controllers.jobs.shell.jobs.JobController._failures.",
    "nominee.controllers.jobs.shell.jobs.JobController._written.",
    "nominee.controllers.owned_pods.expectations.",
    "nominee.kubelet.node.state.NodeState.queue.",
    "nominee.kubelet.pods.record.",
    "nominee.kubelet.shell.registration.",
    "nominee.kubelet.shell.timers.",
    "nominee.machinery.client.",
    "nominee.machinery.runtime.",
    "nominee.scheduler.dispatch.call_queue.CallQueue._uncertain.",
    "nominee.scheduler.dispatch.nominations.",
    "nominee.scheduler.event_handlers.EventHandlers.unannounced_nodes.",
    "nominee.scheduler.framework.cluster.change_log.",
    "nominee.scheduler.framework.cluster.columns.",
    "nominee.scheduler.framework.cycle_state.",
    "nominee.scheduler.framework.runtime.",
    "nominee.scheduler.framework.types.",
    "nominee.scheduler.plugins.dynamic_resources.",
    "nominee.scheduler.preemption.pods_by_importance.",
    "nominee.scheduler.queue.hints.",
    "nominee.scheduler.queue.scheduling_queue.PrioritySchedulingQueue.incoming.",
    "nominee.scheduler.queue.unschedulable.UnschedulablePods._by_rejector.",
)
"""Places where a process has more the longer it runs: histories, back-offs, pools, results of questions
(the plugins that rejected a waiting pod in its last attempt, and what they computed, may not be those of
the first attempt of a new process; the tainted devices are asked for when a pod uses a claim), marks of
writes whose answers were lost of pods that wait, the times of a Service that no longer selects pods
(endpointslice_controller.go, syncService, drops them with the Service); and those whose entries are removed
when they are next looked at, or by the leader alone."""

_QUEUED: Final = "nominee.scheduler.queue.keyed_heap.KeyedHeap._entries."
_GATED: Final = "nominee.scheduler.queue.unschedulable.UnschedulablePods._pods."
_NOMINATOR: Final = "nominee.scheduler.framework.nominations.nominator."


def of_gone(processes: Mapping[str, Holdings]) -> Iterator[Finding]:
    """Find the entries that are named after objects that are gone."""
    for process, held in sorted(processes.items()):
        for place, count in sorted(held.of_gone.items()):
            yield Finding(process, f"has {place} of {count} objects that are gone")


def freed_by_restart(before: Mapping[str, Holdings], after: Mapping[str, Holdings]) -> Iterator[Finding]:
    """Find the containers that had more entries before all processes were restarted.

    Those of a component are counted together: another of its processes may lead. A pod that waits in the
    active queue of a scheduler that does not lead is gated in a new one if a PreEnqueue plugin rejects it by
    now: plugins are asked when a pod comes to that queue; and the nomination of a gated pod is respected only
    when it comes there (kube-scheduler 1.36, scheduling_queue.go).
    """
    former, present = _by_component(before), _by_component(after)
    waiting = present[SCHEDULER, _GATED]
    present[SCHEDULER, _QUEUED] += max(0, waiting - former[SCHEDULER, _GATED])
    for component, place in former:
        if place.startswith(_NOMINATOR):
            present[component, place] += waiting
    for (component, place), count in sorted(former.items()):
        if count > present[component, place] and not place.startswith(_HISTORIES):
            name = ".".join(place.rstrip(".").split(".")[-2:])
            number = present[component, place]
            yield Finding(component, f"had {count} entries of {name}, and {number} after a restart")


def held_twice(first: Mapping[str, Holdings], second: Mapping[str, Holdings]) -> dict[str, Holdings]:
    """Return the entries that processes held at both of two looks.

    A call that is under way at one of them, as of a controller that tries again, has containers of its own.
    """
    return {
        process: replace(held, entries=held.entries & second[process].entries)
        for process, held in first.items()
        if process in second
    }


def _by_component(processes: Mapping[str, Holdings]) -> Counter[tuple[str, str]]:
    found = Counter[tuple[str, str]]()
    for held in processes.values():
        for place, count in held.entries.items():
            found[held.component, place] += count
    return found
