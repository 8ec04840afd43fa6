"""Serve `/debug/queue`, the place of every pending pod, and `/debug/explain`, why one pod is where it is."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Final

from machinery.api.objects import ObjectKey
from machinery.process.serving import Serving
from machinery.runtime.clock import rfc3339_micro
from scheduler.explanation import verdict as verdicts
from scheduler.framework.types import PodInfo, QueuedPodInfo
from scheduler.shell.scheduler import Scheduler
from scheduler.shell.wiring import Parts

EXPLAINED_NODES: Final = 100  # named in an explanation unless the caller asks for another number
EXPLAINED_NODES_MAX: Final = 10_000
_PLACES = ("active", "backoff", "unschedulable", "gated", "waiting_on_permit", "binding")


def serve(serving: Serving, parts: Parts) -> None:
    """Add the routes to the process's port."""

    async def show_queue(request: Any) -> Any:
        from starlette.responses import JSONResponse

        return JSONResponse(queues(parts.scheduler))

    async def show_explanation(request: Any) -> Any:
        """Answer `?pod=NS/NAME[&nodes=N]`."""
        from starlette.responses import JSONResponse

        namespace, _, name = request.query_params.get("pod", "").partition("/")
        nodes = request.query_params.get("nodes", str(EXPLAINED_NODES))
        if not namespace or not name or not nodes.isdecimal():
            return JSONResponse({"message": "expected ?pod=NAMESPACE/NAME[&nodes=NUMBER]"}, status_code=400)
        key = ObjectKey(namespace, name)
        cached = parts.cached_pods.get(key)
        pod = None if cached is None else PodInfo(cached, parts.features.resources)
        nodes_max = min(int(nodes), EXPLAINED_NODES_MAX)
        return JSONResponse(explain(parts.scheduler, key, pod, nodes_max=nodes_max))

    serving.add_route("/debug/queue", show_queue)
    serving.add_route("/debug/explain", show_explanation)


def queues(scheduler: Scheduler) -> dict[str, Any]:
    """Return the queues as JSON, error backoff in `backoff`; `since` is when the pod came or last failed."""
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


def explain(scheduler: Scheduler, key: ObjectKey, pod: PodInfo | None, *, nodes_max: int) -> dict[str, Any]:
    """Return where the pod is, its last attempts, and what a scheduling cycle would find now.

    `pod` is the pod as the watch shows it, None if it does not exist. Of more than `nodes_max` nodes the
    verdict names the best ones and some of the others.
    """
    records = [record.document() for record in scheduler.deps.attempts.of(key)]
    found: dict[str, Any] = {"pod": str(key), "state": "unknown", "attempts": records}
    if pod is None:
        return found
    if pod.pod.spec.nodeName:
        return {**found, "state": "bound", "node": pod.pod.spec.nodeName}
    found.update(_place(scheduler, pod))
    profile = scheduler.deps.profiles.get(pod.pod.spec.schedulerName)
    if profile is None:
        return {**found, "state": "of another scheduler", "scheduler": pod.pod.spec.schedulerName}
    if found["state"] in ("waiting_on_permit", "binding"):
        return found
    framework = profile.framework
    scheduler.deps.cache.update_snapshot(framework.snapshot)
    try:
        verdict = verdicts.explain(framework, framework.snapshot, pod, is_live=True)
    except verdicts.ExplainError as error:
        return {**found, "problem": str(error)}
    return {**found, "now": shortened(verdict.document(), nodes_max)}


def _place(scheduler: Scheduler, pod: PodInfo) -> dict[str, Any]:
    """Return which queue has the pod, or which step of its binding."""
    everything = queues(scheduler)
    nominated = scheduler.deps.queue.nominator.node_of(pod.uid)
    found: dict[str, Any] = {"nominatedNode": nominated} if nominated else {}
    for state in _PLACES:
        for entry in everything[state]:
            if entry["pod"] == str(pod.key):
                found |= {key: entry[key] for key in ("node", "plugins", "since") if key in entry}
                return {**found, "state": state, "attempts_made": entry.get("attempts", 0)}
    return {**found, "state": "being tried"}


def shortened(document: dict[str, Any], nodes_max: int) -> dict[str, Any]:
    """Return a verdict's document with at most so many nodes in each map; `leftOut` is how many were cut."""
    expect, extra = document["expect"], document["extra"]
    totals = {node: scores["total"] for node, scores in expect["scores"].items()}
    best = sorted(expect["feasible"], key=lambda n: (n not in expect["selected"], -totals.get(n, 0), n))
    short = {
        **expect,
        "feasible": sorted(best[:nodes_max]),
        "selected": expect["selected"][:nodes_max],
        "scores": {node: expect["scores"][node] for node in best[:nodes_max] if node in totals},
        "rejected": _first(expect["rejected"], nodes_max),
    }
    preemption = expect["preemption"]
    if preemption is not None:
        chosen = preemption["nominatedNode"]
        candidates = _first(preemption["candidates"], nodes_max)
        if chosen:
            candidates[chosen] = preemption["candidates"][chosen]
            short["rejected"][chosen] = expect["rejected"][chosen]
        short["preemption"] = {**preemption, "candidates": candidates}
    for name in ("victimsByImportance", "preemptionNodeStatus", "heldBy"):
        if name in extra:
            extra = {**extra, name: _first(extra[name], nodes_max)}
    left_out = len(expect["feasible"]) - len(short["feasible"])
    left_out += len(expect["rejected"]) - len(short["rejected"])
    return {**document, "expect": short, "extra": extra, **({"leftOut": left_out} if left_out else {})}


def _first(values: Mapping[str, Any], count: int) -> dict[str, Any]:
    return dict(itertools.islice(values.items(), count))


def _pods(infos: Iterable[QueuedPodInfo]) -> list[dict[str, Any]]:
    return [
        {
            "pod": str(info.pod_info.key),
            "attempts": info.attempts,
            "plugins": sorted(info.rejectors),
            "since": rfc3339_micro(info.timestamp),
        }
        for info in infos
    ]
