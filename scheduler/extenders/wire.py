"""Build requests to extenders and parse their responses. Pure.

Source: kube-scheduler 1.36, extender/v1 types and HTTPExtender. The JSON has Go's own field names;
responses are read without regard to case, as Go reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from nominee.machinery.wire import codec
from nominee.scheduler.configuration.config import Extender
from nominee.scheduler.framework.cluster.snapshot import Snapshot
from nominee.scheduler.framework.interface import MAX_NODE_SCORE, Candidate
from nominee.scheduler.framework.types import NodeInfo, PodInfo

MAX_EXTENDER_SCORE = 10
Json = dict[str, Any]


class ExtenderError(Exception):
    """An extender failed, or its response is invalid."""


@dataclass(frozen=True, slots=True)
class Call:
    """One POST of `body` to an extender."""

    extender: Extender
    verb: str
    body: Json


@dataclass(frozen=True, slots=True)
class Filtered:
    """Names of nodes that passed, in the extender's order; why others did not, by name."""

    passed: list[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)


def is_interested(extender: Extender, pod: PodInfo) -> bool:
    """Return whether the extender is called for the pod: always, or for the resources that it manages."""
    if not extender.managed_resources:
        return True
    managed = set(extender.managed_resources)
    return any(
        not managed.isdisjoint(container.resources.requests)
        or not managed.isdisjoint(container.resources.limits)
        for container in (*pod.pod.spec.containers, *pod.pod.spec.initContainers)
    )


def filter_call(extender: Extender, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Call:
    return Call(extender, extender.filter_verb, _arguments(extender, pod, nodes))


def prioritize_call(extender: Extender, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Call:
    return Call(extender, extender.prioritize_verb, _arguments(extender, pod, nodes))


def bind_call(extender: Extender, pod: PodInfo, node_name: str) -> Call:
    body = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node_name}
    return Call(extender, extender.bind_verb, body)


def preempt_call(extender: Extender, pod: PodInfo, candidates: Sequence[Candidate]) -> Call:
    """Return the call of an extender's preempt verb with the candidates."""
    body: Json = {"Pod": _json(pod.pod), "NodeNameToVictims": None, "NodeNameToMetaVictims": None}
    if extender.node_cache_capable:
        body["NodeNameToMetaVictims"] = {
            candidate.node: _victims(candidate, [{"UID": victim.uid} for victim in candidate.victims])
            for candidate in candidates
        }
    else:
        body["NodeNameToVictims"] = {
            candidate.node: _victims(candidate, [_json(victim.pod) for victim in candidate.victims])
            for candidate in candidates
        }
    return Call(extender, extender.preempt_verb, body)


def read_filtered(extender: Extender, answer: Any, asked: Sequence[NodeInfo]) -> Filtered:
    """Return the nodes that passed and the rejections.

    Raises:
        ExtenderError: the extender returned an error, or a node that was not in the request.
    """
    result = _object(answer)
    if error := result.get("error"):
        raise ExtenderError(str(error))
    names: list[str] = []
    if extender.node_cache_capable and result.get("nodenames") is not None:
        names = [str(name) for name in _list(result["nodenames"])]
    elif result.get("nodes") is not None:
        items = _list(_object(result["nodes"]).get("items") or [])
        names = [str(_object(_object(item).get("metadata")).get("name", "")) for item in items]
    known = {node.name for node in asked}
    for name in names:
        if name not in known:
            raise ExtenderError(
                f'extender "{extender.url_prefix}" claims a filtered node "{name}" which is not found in the '
                "input node list"
            )
    unresolvable = _texts(result.get("failedandunresolvablenodes"))
    failed = _texts(result.get("failednodes"))
    return Filtered(names, {k: v for k, v in failed.items() if k not in unresolvable}, unresolvable)


def read_scores(extender: Extender, answer: Any) -> dict[str, int]:
    """Return the scores by node, on the scheduler's scale: an extender's are 0 to 10, times its weight.

    Raises:
        ExtenderError: the response is invalid.
    """
    scale = extender.weight * (MAX_NODE_SCORE // MAX_EXTENDER_SCORE)
    scores: dict[str, int] = {}
    for entry in _list(answer):
        item = _object(entry)
        score = item.get("score", 0)
        if not isinstance(score, int) or isinstance(score, bool):
            raise ExtenderError(f"score {score!r} is not a whole number")
        host = str(item.get("host", ""))
        scores[host] = scores.get(host, 0) + score * scale
    return scores


def read_candidates(extender: Extender, answer: Any, snapshot: Snapshot) -> list[Candidate]:
    """Return the candidates that are left.

    An ignorable extender's nodes without victims are dropped.

    Raises:
        ExtenderError: an unknown node or pod, or a node without victims.
    """
    candidates = []
    for node_name, entry in _pairs(_object(answer).get("nodenametometavictims")):
        node = snapshot.get(node_name)
        if node is None:
            raise ExtenderError(f'nodeinfo not found for node name "{node_name}"')
        meta = _object(entry)
        victims = []
        for each in _list(meta.get("pods") or []):
            uid = str(_object(each).get("uid", ""))
            if uid not in node.pods:
                raise ExtenderError(
                    f"extender: {extender.url_prefix} claims to preempt pod (UID: {uid}) on node: "
                    f"{node_name}, but the pod is not found on that node"
                )
            victims.append(node.pods[uid])
        if victims:
            candidates.append(Candidate(node_name, tuple(victims), int(meta.get("numpdbviolations") or 0)))
        elif not extender.ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{node_name}"')
    return candidates


def read_bound(answer: Any) -> None:
    """Check that the pod was bound.

    Raises:
        ExtenderError: it was not.
    """
    if error := _object(answer).get("error"):
        raise ExtenderError(str(error))


def _arguments(extender: Extender, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Json:
    body: Json = {"Pod": _json(pod.pod), "Nodes": None, "NodeNames": None}
    if extender.node_cache_capable:
        body["NodeNames"] = [node.name for node in nodes]
    else:
        body["Nodes"] = {"metadata": {}, "items": [_json(node.node) for node in nodes if node.node]}
    return body


def _victims(candidate: Candidate, pods: list[Json]) -> Json:
    return {"Pods": pods, "NumPDBViolations": candidate.pdb_violations}


def _json(message: Message) -> Json:
    return dict(codec.to_json(message))


def _object(value: Any) -> Json:
    """Return an object with its keys in lower case."""
    if not isinstance(value, dict):
        raise ExtenderError(f"expected an object, got {_short(value)}")
    return {str(key).lower(): each for key, each in value.items()}


def _pairs(value: Any) -> list[tuple[str, Any]]:
    """Return a map whose keys are names; nothing for null."""
    if value is None:
        return []
    if not isinstance(value, dict):
        raise ExtenderError(f"expected an object, got {_short(value)}")
    return list(value.items())


def _texts(value: Any) -> dict[str, str]:
    return {name: str(text) for name, text in _pairs(value)}


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ExtenderError(f"expected a list, got {_short(value)}")
    return value


def _short(value: Any) -> str:
    return repr(value)[:80]
