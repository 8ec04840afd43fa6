"""The copies that processes keep of the API server's objects, and their caches. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nominee.lab.chaos.rest.scheduling import QUEUE, SCHEDULER
from nominee.lab.chaos.rest.state import Finding, Scope, State, in_order, name_of
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import has_ended, key_of
from nominee.machinery.wire.values.scalars import Json

STATE: Final = "/debug/state"
WITH_STATE: Final = frozenset({"scheduler", "kubelet", "controllers", "autoscaler"})
"""The components that serve their state."""


def scopes_of(document: Json) -> list[Scope]:
    """Return the scopes of a process's copies; None is a process without a state."""
    return [] if document is None else [_scope(copy) for copy in document["copies"]]


def _scope(copy: Json) -> Scope:
    kind = kinds.by_kind(copy["apiVersion"], copy["kind"])
    assert kind is not None, f"a process copies objects of no kind: {copy['apiVersion']} {copy['kind']}"
    return Scope(kind, copy["namespace"], copy["labelSelector"], copy["fieldSelector"])


def _states(state: State) -> Iterator[tuple[str, Json]]:
    return ((name, document) for (name, path), document in state.debug.items() if path == STATE)


def stale_copies(state: State) -> Iterator[Finding]:
    """Find objects of which a process has no copy, an older one, or one although they are gone."""
    for process, document in _states(state):
        for copy in document["copies"]:
            kind, objects = copy["kind"].lower(), copy["objects"]
            stored = state.revisions.get(_scope(copy), {})
            for name in sorted(objects.keys() | stored.keys()):
                if name not in objects:
                    yield Finding(f"{kind} {name}", f"is not copied by {process}")
                elif name not in stored:
                    yield Finding(f"{kind} {name}", f"is copied by {process}, and is gone")
                elif int(objects[name]) < int(stored[name]):
                    text = f"is copied by {process} at revision {objects[name]}, and has changed since"
                    yield Finding(f"{kind} {name}", text)


def scheduler_caches(state: State) -> Iterator[Finding]:
    """Find pods that a scheduler counts on another node than theirs, and sums that are not those of pods."""
    on_the_way = _on_the_way(state)
    for process, document in _states(state):
        if "assumed" not in document:
            continue
        counted = {uid: node for node, uids in document["nodes"].items() for uid in uids}
        for pod in state.of(kinds.POD):
            node = "" if has_ended(pod) else pod.spec.nodeName
            held = counted.pop(pod.metadata.uid, "")
            if held != node and str(key_of(pod)) not in on_the_way:
                text = f"is on {node or 'no node'}, and for the cache of {process} on {held or 'no node'}"
                yield Finding(name_of(pod), text)
        for uid, node in counted.items():
            yield Finding(f"pod {uid}", f"is on {node} for the cache of {process}, and is gone")
        unknown = state.node_names - document["nodes"].keys()
        if unknown:
            yield Finding(f"the cache of {process}", f"lacks the nodes {in_order(unknown)}")
        yield from (Finding(f"the cache of {process}", problem) for problem in document["problems"])


def _on_the_way(state: State) -> set[str]:
    """Return the pods that a scheduler binds or that wait on Permit: it assumes them on their nodes."""
    document = state.debug.get((SCHEDULER, QUEUE))
    if document is None:
        return set()
    return {entry["pod"] for place in ("binding", "waiting_on_permit") for entry in document[place]}


def kubelet_pods(state: State) -> Iterator[Finding]:
    """Find pods that the kubelet of their node does not have, or still has although they are gone."""
    pods = {pod.metadata.uid: pod for pod in state.of(kinds.POD) if pod.spec.nodeName}
    for process, document in _states(state):
        if "nodes" not in document or "assumed" in document:
            continue
        for node, uids in document["nodes"].items():
            if node not in state.node_names:
                continue
            own = {uid: name_of(pod) for uid, pod in pods.items() if pod.spec.nodeName == node}
            for uid in sorted(own.keys() - set(uids)):
                yield Finding(own[uid], f"is not known to {process}, the kubelet of {node}")
            for uid in sorted(set(uids) - own.keys()):
                yield Finding(f"pod {uid}", f"is still kept by {process} on {node}")


def expected_writes(state: State) -> Iterator[Finding]:
    """Find objects that a controller does not reconcile, since it waits for its own writes to be seen."""
    for process, document in _states(state):
        for controller, keys in document.get("outstanding", {}).items():
            for key in keys:
                yield Finding(f"{controller} of {process}", f"still waits for its writes for {key}")
