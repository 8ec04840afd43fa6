"""Serve `/debug/queue`, the place of every pending pod, `/debug/explain`, why one pod is where it is, and
`/debug/state`, the cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from nominee.machinery.api import kinds
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.process.serving_port.debug_state import DebugState
from nominee.machinery.process.serving_port.serving import Serving
from nominee.machinery.runtime import logs
from nominee.machinery.runtime.clock import rfc3339_micro
from nominee.scheduler.explanation import format as output
from nominee.scheduler.explanation import verdict as verdicts
from nominee.scheduler.explanation.document import pod_explanation
from nominee.scheduler.framework.api.deferred_resize import is_deferred_resize
from nominee.scheduler.framework.cluster.cache import Cache
from nominee.scheduler.framework.cluster.cache_check import cache_problems
from nominee.scheduler.framework.types import PodInfo, QueuedPodInfo
from nominee.scheduler.plugins.dynamic_resources.tracker import unannounced_devices
from nominee.scheduler.plugins.volume_binding import VolumeBinding
from nominee.scheduler.shell.loop.scheduler import Scheduler
from nominee.scheduler.shell.process.wiring import Parts

EXPLAINED_NODES: Final = 100  # named in an explanation unless the caller asks for another number
EXPLAINED_NODES_MAX: Final = 10_000
DIGITS_MAX: Final = 9
_STATES: Final[Mapping[str, output.State]] = {
    "active": "Active",
    "backoff": "Backoff",
    "unschedulable": "Unschedulable",
    "gated": "Gated",
    "waiting_on_permit": "WaitingOnPermit",
    "binding": "Binding",
}
"""By key of `queues`."""
_log = logs.get()


def serve(serving: Serving, parts: Parts) -> None:
    """Add the routes to the process's port."""
    # As in machinery/process/serving_port/serving.py: a check of the options ends without it.
    from starlette.responses import JSONResponse

    async def show_queue(request: Any) -> Any:
        return JSONResponse({**queues(parts.scheduler), "unannounced": room_without_events(parts)})

    async def show_explanation(request: Any) -> Any:
        """Answer `?pod=NS/NAME[&nodes=N]`."""
        namespace, _, name = request.query_params.get("pod", "").partition("/")
        nodes = request.query_params.get("nodes", str(EXPLAINED_NODES))
        if not namespace or not name or not nodes.isdecimal() or len(nodes) > DIGITS_MAX:
            return JSONResponse({"message": "expected ?pod=NAMESPACE/NAME[&nodes=NUMBER]"}, status_code=400)
        key = ObjectKey(namespace, name)
        cached = parts.cached_pods.get(key)
        pod = None if cached is None else PodInfo(cached, parts.features.resources)
        nodes_max = min(int(nodes), EXPLAINED_NODES_MAX)
        return JSONResponse(explain(parts.scheduler, key, pod, nodes_max=nodes_max))

    serving.add_route("/debug/queue", show_queue)
    serving.add_route("/debug/explain", show_explanation)
    state = DebugState(serving, parts.informers.listers.values())
    state.add("nodes", lambda: {**nodes(parts.cache)})
    state.add("assumed", lambda: sorted(parts.cache.assumed_pods()))
    state.add("problems", lambda: [*cache_problems(parts.cache)])


def room_without_events(parts: Parts) -> dict[str, Any]:
    """Return the nodes, volumes and devices that came free without an event that wakes pods, some with times.

    Pods that wait for them are left to the flush of the queue. The volumes are claims, too, for which another
    node may be chosen again.
    """
    claims = parts.informers.listers.get(kinds.RESOURCE_CLAIM)
    frameworks = (profile.framework for profile in parts.scheduler.deps.profiles.values())
    plugins = (plugin for framework in frameworks for plugin in framework.reserve_plugins)
    binders = [plugin.binder for plugin in plugins if isinstance(plugin, VolumeBinding)]
    return {
        "nodes": {node: rfc3339_micro(time) for node, time in parts.handlers.unannounced_nodes.items()},
        "volumes": {
            str(key): rfc3339_micro(parts.now.at(monotonic))
            for binder in binders
            for key, monotonic in (
                *binder.volumes.silent_releases().items(),
                *binder.claims.silent_releases().items(),
            )
        },
        "devices": () if claims is None else unannounced_devices(claims),
    }


def nodes(cache: Cache) -> dict[str, list[str]]:
    """Return the uids of the pods on each node of the cache, with assumed ones."""
    return {info.name: sorted(info.pods) for info in cache.nodes()}


def queues(scheduler: Scheduler) -> dict[str, Any]:
    """Return the queues as JSON, error backoff in `backoff`.

    `since` is when the pod came or last failed, `lastAttemptStartTime` when it was popped for that attempt.
    """
    queue = scheduler.deps.queue
    waiting = list(scheduler.deps.waiting)
    waiting_uids = {pod.pod.uid for pod in waiting}
    in_binding = scheduler.bindings.binding.values()
    return {
        "active": _pods(queue.active()),
        "backoff": _pods([*queue.backing_off(), *queue.error_backing_off()]),
        "unschedulable": _pods(queue.unschedulable()),
        "gated": _pods(queue.gated()),
        "waiting_on_permit": [{"pod": str(pod.pod.key), "node": pod.node_name} for pod in waiting],
        "binding": [
            {"pod": str(attempt.pod.key), "node": attempt.node_name}
            for attempt in in_binding
            if attempt.pod.uid not in waiting_uids
        ],
        "nominated": {
            node: [str(pod.key) for pod in pods.values()] for node, pods in queue.nominator.by_node.items()
        },
    }


def explain(
    scheduler: Scheduler, key: ObjectKey, pod: PodInfo | None, *, nodes_max: int
) -> output.LivePodExplanation:
    """Return the pod's state, its last attempts, and the decision of a scheduling cycle now.

    `pod` is the pod as the watch shows it, None if it does not exist. Lists of more than `nodes_max` nodes
    are shortened.
    """
    found: output.LivePodExplanation = {
        "apiVersion": output.API_VERSION,
        "kind": "LivePodExplanation",
        "pod": str(key),
        "state": "Unknown",
        "schedulerName": "" if pod is None else pod.pod.spec.schedulerName,
        "node": "" if pod is None else pod.pod.spec.nodeName,
        "nominatedNode": "",
        "attemptCount": 0,
        "rejectedBy": [],
        "since": "",
        "lastAttemptStartTime": "",
        "attempts": [record.document() for record in scheduler.deps.attempts.of(key)],
        "error": "",
        "explanation": None,
    }
    if pod is None:
        return found
    resizes = is_deferred_resize(pod.pod)
    if found["node"]:
        found["state"] = "Bound"
        if not resizes:
            return found
    else:
        _place(scheduler, pod, found)
    profile = scheduler.deps.profiles.get(found["schedulerName"])
    if profile is None:
        found["state"] = "OtherScheduler"
        return found
    if found["state"] in ("WaitingOnPermit", "Binding"):
        return found
    framework = profile.framework
    scheduler.deps.cache.update_snapshot(framework.snapshot)
    try:
        if resizes:
            options = scheduler.features.resize_preemption
            verdict = verdicts.explain_resize(framework, framework.snapshot, pod, options, is_live=True)
        else:
            verdict = verdicts.explain(framework, framework.snapshot, pod, is_live=True)
    except verdicts.ExplainError as error:
        _log.warning("A plugin failed in an explanation", pod=key, error=str(error), exc_info=error.__cause__)
        found["error"] = str(error)
        return found
    found["explanation"] = pod_explanation(verdict, nodes_max=nodes_max)
    return found


def _place(scheduler: Scheduler, pod: PodInfo, found: output.LivePodExplanation) -> None:
    """Fill in which queue has the pod, or which step of its binding."""
    everything = queues(scheduler)
    found["nominatedNode"] = scheduler.deps.queue.nominator.node_of(pod.uid)
    found["state"] = "Scheduling"
    for place, state in _STATES.items():
        for entry in everything[place]:
            if entry["pod"] == str(pod.key):
                found["state"] = state
                found["node"] = entry.get("node", "")
                found["attemptCount"] = entry.get("attempts", 0)
                found["rejectedBy"] = entry.get("plugins", [])
                found["since"] = entry.get("since", "")
                found["lastAttemptStartTime"] = entry.get("lastAttemptStartTime", "")
                return


def _pods(infos: Iterable[QueuedPodInfo]) -> list[dict[str, Any]]:
    return [
        {
            "pod": str(info.pod_info.key),
            "attempts": info.attempts,
            "plugins": sorted(info.rejectors),
            "since": rfc3339_micro(info.timestamp),
            "lastAttemptStartTime": (
                "" if info.last_attempt_start is None else rfc3339_micro(info.last_attempt_start)
            ),
        }
        for info in infos
    ]
