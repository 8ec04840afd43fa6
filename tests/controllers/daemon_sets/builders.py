"""Daemon sets and their pods for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nominee.controllers.daemon_sets.placement import Placement, by_node
from nominee.machinery.api.pb import apps, core
from nominee.machinery.scheduling.daemons import Verdict
from nominee.machinery.wire import codec
from tests.controllers.builders import EPOCH, owned_by, pod

UID = "ds-uid"
NEW, OLD = "new", "old"
RUNS, KEEPS, NEITHER = Verdict(True, True), Verdict(False, True), Verdict(False, False)


def daemon_set(
    *,
    surge: int | str = 0,
    unavailable: int | str = 1,
    min_ready_seconds: int = 0,
    on_delete: bool = False,
    image: str = "agent:1",
    limit: int = 10,
    deleted: bool = False,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> apps.DaemonSet:
    """Return the daemon set `agent`; `spec` is of its pods."""
    rolling = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    strategy = {"type": "OnDelete"} if on_delete else {"type": "RollingUpdate", **rolling}
    metadata: dict[str, Any] = {"name": "agent", "namespace": "default", "uid": UID, "generation": 1}
    metadata["annotations"] = dict(annotations or {})
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    template = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [{"name": "c", "image": image}], **spec},
    }
    return codec.from_json(
        apps.DaemonSet,
        {
            "metadata": metadata,
            "spec": {
                "selector": {"matchLabels": {"app": "agent"}},
                "minReadySeconds": min_ready_seconds,
                "revisionHistoryLimit": limit,
                "updateStrategy": strategy,
                "template": template,
            },
        },
    )


def daemon(name: str, node: str = "n1", *, of: str = NEW, ready: bool = True, **more: Any) -> core.Pod:
    """Return a pod of the daemon set on a node."""
    labels = {"app": "agent", "controller-revision-hash": of}
    owner = owned_by(UID, kind="DaemonSet", name="agent")
    more.setdefault("phase", "Running")
    return pod(name, uid=name, node=node, labels=labels, owners=[owner], ready=ready, **more)


def placement(
    owner: apps.DaemonSet,
    *pods: core.Pod,
    nodes: Sequence[str] | Mapping[str, Verdict] = ("n1", "n2", "n3"),
    now: int = 1000,
) -> Placement:
    """Return the placement at `now` seconds after EPOCH; nodes given by name run a pod."""
    verdicts = nodes if isinstance(nodes, Mapping) else dict.fromkeys(nodes, RUNS)
    return Placement(owner, NEW, verdicts, by_node(pods), EPOCH + now)
