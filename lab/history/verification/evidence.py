"""The evidence of a running cluster beside etcd: the scheduler's queue and the kubelets' checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from nominee.lab.history.connection import read_plan
from nominee.lab.history.invariants.checking.evidence import CheckpointedPod, Evidence
from nominee.localcluster.supervisor.directory import JsonObject, StateDirectory
from nominee.localcluster.supervisor.model.node_ranges import of_kubelet, option_value
from nominee.machinery.api.objects import ObjectKey
from nominee.machinery.process.serving_port.serving_client import HttpError, ServingPort, request

_PLACES: Final = ("active", "backoff", "unschedulable", "gated", "waiting_on_permit", "binding")
_SECONDS_MAX: Final = 5.0
_CHECKPOINTS: Final = "kubelet"


def collect(directory: Path, now: float) -> Evidence:
    """Return the evidence of a running cluster. It blocks: processes and files are read."""
    return Evidence(now=now, queued_pods=_queued_pods(directory), checkpoints=_checkpoints(directory))


def _queued_pods(directory: Path) -> frozenset[ObjectKey] | None:
    """Return the pods in the schedulers' queues; None if no scheduler answers."""
    documents = [
        answer
        for document in StateDirectory(directory).live_run_files().values()
        if document.get("component") == "scheduler" and document.get("http")
        if (answer := _queue(ServingPort.of(str(document["http"]), directory))) is not None
    ]
    return frozenset().union(*map(queued_pods, documents)) if documents else None


def queued_pods(document: JsonObject) -> frozenset[ObjectKey]:
    """Return the pods in a scheduler's `/debug/queue`."""
    return frozenset(ObjectKey.parse(entry["pod"]) for place in _PLACES for entry in document.get(place, ()))


def _queue(port: ServingPort) -> JsonObject | None:
    try:
        answer = request(port, "/debug/queue", timeout_seconds=_SECONDS_MAX)
        document = json.loads(answer.text) if answer.status == 200 else None
    except (HttpError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _checkpoints(directory: Path) -> dict[str, Mapping[str, CheckpointedPod]] | None:
    """Return the checkpoints of nodes whose kubelet runs; None if no kubelet does."""
    is_served = _served_nodes(directory)
    if is_served is None:
        return None
    found: dict[str, Mapping[str, CheckpointedPod]] = {}
    for path in sorted((directory / _CHECKPOINTS).glob("*.json")):
        if is_served(path.stem):
            pods = _read(path)
            if pods is not None:
                found[path.stem] = pods
    return found


def _served_nodes(directory: Path) -> Callable[[str], bool] | None:
    """Return a function that says whether a node's kubelet runs; None if there is no kubelet.

    A kubelet that is not in the plan, or that has nodes of a cloud, may have any node that no other has.
    """
    live = StateDirectory(directory).live_run_files()
    running = {name for name, document in live.items() if document.get("component") == "kubelet"}
    if not running:
        return None
    plan = read_plan(directory)
    specs = [spec for spec in (plan.processes if plan else ()) if spec.component == "kubelet"]
    ranges = [(spec.name in running, of_kubelet(spec.argv)) for spec in specs]
    all_run = all(spec.name in running for spec in specs if _has_cloud(spec.argv))

    def is_served(node: str) -> bool:
        for runs, nodes in ranges:
            if nodes.has(node):
                return runs
        return all_run

    return is_served


def _has_cloud(argv: tuple[str, ...]) -> bool:
    return "--cloud" in argv or bool(option_value(argv, "--cloud-address", ""))


def _read(path: Path) -> dict[str, CheckpointedPod] | None:
    try:
        return checkpointed_pods(path.read_bytes())
    except OSError:
        return None


def checkpointed_pods(data: bytes) -> dict[str, CheckpointedPod] | None:
    """Return the pods of a checkpoint (kubelet/checkpoint.py has the format); None for any other text."""
    try:
        body = json.loads(data)["data"]
        allocations, sandboxes = body["allocations"], body["sandboxes"]
        return {
            uid: CheckpointedPod(
                requests=dict(_requests(allocations.get(uid, {"containers": ()}))),
                running=_runs(sandboxes.get(uid, {"containers": ()})),
            )
            for uid in {**allocations, **sandboxes}
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _requests(allocation: JsonObject) -> Iterator[tuple[str, dict[str, str]]]:
    for name, requirements in allocation["containers"]:
        yield str(name), dict(requirements.get("requests", {}))


def _runs(sandbox: JsonObject) -> bool:
    return any(container.get("state") == "running" for container in sandbox["containers"])
