"""Read the metrics that are computed when they are scraped."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nominee.scheduler.plugins.default_preemption import DefaultPreemption
from nominee.scheduler.shell.loop.deps import SchedulerDeps
from nominee.scheduler.shell.loop.scheduler import Scheduler
from nominee.scheduler.shell.metrics.tables import (
    CACHE_SIZE,
    GOROUTINES,
    IN_FLIGHT_EVENTS,
    INCOMING_PODS,
    PENDING_PODS,
    PLUGIN_EVALUATIONS,
    PREEMPTION_ATTEMPTS,
    UNSCHEDULABLE_PODS,
    Read,
    Values,
)
from nominee.scheduler.shell.metrics.timing import PointTimer


def read_sources(
    deps: SchedulerDeps, scheduler: Scheduler, timers: Mapping[str, PointTimer]
) -> dict[Read, Callable[[], Values]]:
    """Return the sources by metric; `timers` by profile."""
    cache, queue = deps.cache, deps.queue

    def cache_sizes() -> Values:
        return {
            "nodes": cache.node_count,
            "pods": cache.pod_count,
            "assumed_pods": len(cache.assumed_pods()),
        }

    def evaluations() -> Values:
        return {
            (plugin, point, name): count
            for name, timer in timers.items()
            for (plugin, point), count in timer.evaluations(deps.profiles[name].framework).items()
        }

    def preemptions() -> Values:
        frameworks = (parts.framework for parts in deps.profiles.values())
        plugins = (framework.plugins.get(DefaultPreemption.name) for framework in frameworks)
        return {(): sum(plugin.attempts for plugin in plugins if isinstance(plugin, DefaultPreemption))}

    return {
        PENDING_PODS: queue.counts,
        INCOMING_PODS: lambda: queue.incoming,
        CACHE_SIZE: cache_sizes,
        UNSCHEDULABLE_PODS: queue.rejected,
        IN_FLIGHT_EVENTS: queue.kept_events,
        GOROUTINES: scheduler.tasks,
        PLUGIN_EVALUATIONS: evaluations,
        PREEMPTION_ATTEMPTS: preemptions,
    }
