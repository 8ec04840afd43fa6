"""The texts of resize events: a sentence and the resources as Kubernetes' JSON (kubelet 1.36)."""

from __future__ import annotations

import json
from collections.abc import Iterable

from nominee.kubelet.resources.pod_resources import PodResources
from nominee.kubelet.resources.requirements import Requirements
from nominee.machinery.api.pb import core

# What Go's encoder escapes in strings, beside what JSON itself wants.
_GO_ESCAPES = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)

STARTED = "Pod resize started"
COMPLETED = "Pod resize completed"
FAILED = "Pod resize error"


def resize_message(
    sentence: str, pod: core.Pod, resources: PodResources, generation: int, error: str = ""
) -> str:
    """`Pod resize started: {"containers":[...],"generation":2}`."""
    summary: dict[str, object] = {}
    for field, containers in (
        ("initContainers", pod.spec.initContainers),
        ("containers", pod.spec.containers),
    ):
        rows = _rows(containers, resources)
        if rows:
            summary[field] = rows
    summary["generation"] = generation
    if error:
        summary["error"] = error
    text = json.dumps(summary, separators=(",", ":"), ensure_ascii=False)
    return f"{sentence}: {text.translate(_GO_ESCAPES)}"


def _rows(containers: Iterable[core.Container], resources: PodResources) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for container in containers:
        own = resources.get(container.name) or Requirements.from_message(container.resources)
        rows.append({"name": container.name, "resources": own.to_json()})
    return rows
