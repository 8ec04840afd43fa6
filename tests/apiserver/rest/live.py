"""What the clients' sessions are made of: manifests, and what the cluster shall come to."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
# See the fixture `litter`.
LITTERING = [
    pytest.mark.usefixtures("litter"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
# No scheduler has this name: the test binds the pod.
BY_HAND = "no-scheduler"


def library(name: str) -> Any:
    """A client's module, imported only when its session is played; its types are not ours to heed."""
    return importlib.import_module(name)


def pod(name: str, *, app: str = "x", scheduler: str = BY_HAND, cpu: str = "50m") -> dict[str, Any]:
    """A pod of one container that ends within a second."""
    resources = {"requests": {"cpu": cpu}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "pause:3", "resources": resources}],
        },
    }


def binding(name: str, node: str = "node-0") -> dict[str, Any]:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}


def eviction(name: str) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}


def more_cpu(cpu: str = "70m") -> dict[str, Any]:
    """A patch of `resize`."""
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}


def deployment(name: str, replicas: int = 1) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod(name, scheduler="default-scheduler")["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def kubeconfig(directory: Path) -> str:
    return str(directory / "kubeconfig")
