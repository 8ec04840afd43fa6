"""The present state of a cluster's processes as the page shows it: from `nominee status` and their ports.

All functions block, and run in a thread.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from nominee.commands.cluster.status import changed_gates, running_cluster
from nominee.lab.history.connection import read_plan
from nominee.localcluster.components import BY_NAME
from nominee.localcluster.supervisor.directory import JsonObject
from nominee.localcluster.supervisor.model.node_ranges import option_value
from nominee.machinery.features.gates import DEFAULT
from nominee.machinery.process.run_files import RunFile
from nominee.machinery.process.serving_port.serving_client import HttpError, ServingPort, request
from nominee.machinery.runtime.clock import parse_rfc3339
from nominee.machinery.wire.values.scalars import Json

Component = JsonObject
_SECONDS_MAX: Final = 2.0
_QUEUES: Final = ("active", "backoff", "unschedulable", "gated", "waiting_on_permit", "binding")
_OFF: Final = ("", "off")


def running(directory: Path, holders: Collection[str]) -> list[Component] | None:
    """Return the processes of a running cluster, None if none runs; `holders` are those of leases."""
    try:
        found: Sequence[JsonObject] = running_cluster(directory)["components"]
    except click.ClickException:
        return None
    several = {each["component"] for each in found if f"{each['component']}-1" == each["name"]}
    return [
        {
            "name": each["name"],
            "component": each["component"],
            "version": each.get("emulatedVersion") or each.get("version") or "",
            "gates": changed_gates(each),
            "leader": _leads(each["name"], holders) if each["component"] in several else None,
            "state": each["state"],
            "health": _HEALTH[each["healthy"]],
            "restarts": each["restarts"],
            **_disturbances(each, directory),
        }
        for each in found
    ]


_HEALTH: Final[Mapping[bool | None, str]] = {True: "ok", False: "fails its health check", None: ""}


def _leads(name: str, holders: Collection[str]) -> bool | None:
    """Return whether a process has a lease; the members of etcd and API servers have none."""
    if name.startswith(("etcd", "apiserver")):
        return None
    return any(f"_{name}_" in holder for holder in holders)


def of_plan(directory: Path) -> list[Component]:
    """Return the processes of the last `nominee up` in a directory, which are down."""
    plan = read_plan(directory)
    found: list[Component] = []
    for each in plan.processes if plan is not None else ():
        versioned = each.component in BY_NAME and BY_NAME[each.component].versioned
        text = option_value(each.argv, "--feature-gates", "")
        found.append(
            {
                "name": each.name,
                "component": each.component,
                "version": option_value(each.argv, "--emulated-version", str(DEFAULT)) if versioned else "",
                "gates": {
                    gate: value == "true"
                    for gate, _, value in (part.partition("=") for part in text.split(",") if part)
                },
                "leader": None,
                "state": "down",
                "health": "",
                "failpoints": [],
                "faults": [],
            }
        )
    return found


def _disturbances(process: JsonObject, directory: Path) -> dict[str, list[str]]:
    """Return the failpoints and faults of a healthy process; of another one none are known."""
    if not process.get("healthy") or process["component"] not in BY_NAME or not process.get("http"):
        return {"failpoints": [], "faults": []}
    port = ServingPort.of(process["http"], directory)
    points = _get(port, "/failpoints") or ()
    rules = (_get(port, "/faults") or {}).get("rules", ())
    return {
        "failpoints": [f"{each['name']}: {each['action']}" for each in points if each["action"] not in _OFF],
        "faults": [
            " ".join([*(rule[key] for key in ("to", "method", "kind") if rule[key] != "*"), rule["action"]])
            for rule in rules
        ],
    }


def queues(directory: Path, scheduler: str, now: float) -> Json:
    """Return the queues of a scheduler; None if it does not answer."""
    port = _port(directory, scheduler)
    document = _get(port, "/debug/queue") if port is not None else None
    if document is None:
        return None
    found: dict[str, Json] = {
        name: [
            {
                "pod": pod["pod"],
                "reason": ", ".join(pod.get("plugins") or ()),
                "node": pod.get("node", ""),
                "seconds": _seconds(pod.get("since"), now),
                "attempts": pod.get("attempts", 0),
            }
            for pod in document.get(name, ())
        ]
        for name in _QUEUES
    }
    found["nominated"] = [
        {"pod": pod, "reason": "", "node": node, "seconds": None}
        for node, pods in document.get("nominated", {}).items()
        for pod in pods
    ]
    return found


def _seconds(since: str | None, now: float) -> float | None:
    """Return how long ago a time of a queue was, to a tenth of a second."""
    try:
        return round(max(now - parse_rfc3339(since), 0.0), 1) if since else None
    except ValueError:
        return None


def autoscaler(directory: Path, process: str, nodes: Collection[str]) -> Json:
    """Return the groups of the cloud, and the result of the autoscaler's last loop; None without a cloud.

    `nodes` are the names of those that exist: other instances are upcoming.
    """
    cloud, loop = _port(directory, "cloud"), _port(directory, process)
    groups = _get(cloud, "/debug/groups") if cloud is not None else None
    if groups is None:
        return None
    last = (_get(loop, "/debug/loop") if loop is not None else None) or {}
    upcoming = {
        name: [each for each in group["instances"] if each not in nodes] for name, group in groups.items()
    }
    return {
        "groups": [
            {
                "name": name,
                "size": len(group["instances"]),
                "min": group["min"],
                "max": group["max"],
                "upcoming": len(upcoming[name]),
            }
            for name, group in groups.items()
        ],
        "unneeded": [
            {"node": node, "seconds": last.get("unneededSeconds", {}).get(node), "reason": ""}
            for node in last.get("unneeded", ())
        ],
        "upcoming": [
            {"node": node, "group": name, "seconds": None}
            for name, found in upcoming.items()
            for node in found
        ],
        "unremovable": last.get("unremovable", {}),
        "error": last.get("error", ""),
    }


def _port(directory: Path, process: str) -> ServingPort | None:
    file = RunFile.read(directory, process)
    return ServingPort.of(file.http, directory) if file is not None and file.http else None


def _get(port: ServingPort, path: str) -> Json:
    """Return the JSON that a process answers; None if it does not."""
    try:
        answer = request(port, path, timeout_seconds=_SECONDS_MAX)
        return json.loads(answer.text) if answer.status == 200 else None
    except (HttpError, ValueError):
        return None
