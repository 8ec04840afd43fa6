"""What the clients' sessions are made of: manifests, and what the cluster shall come to."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest

from machinery.runtime.clock import SystemClock
from tests.support.patience import PATIENCE_SECONDS

T = TypeVar("T")
# See the fixture `litter`.
LITTERING = [
    pytest.mark.usefixtures("litter"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
# The scheduler of nobody: a pod that waits to be bound by the test.
BY_HAND = "nobody"


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


def eventually(read: Callable[[], T], good: Callable[[T], Any]) -> T:
    """What is read, as soon as it is good."""
    clock = SystemClock()
    deadline = clock.monotonic() + PATIENCE_SECONDS
    while not good(seen := read()):
        assert clock.monotonic() < deadline, f"not within {PATIENCE_SECONDS:g} s; last seen: {seen}"
        threading.Event().wait(0.05)
    return seen


async def until(read: Callable[[], Awaitable[T]], good: Callable[[T], Any]) -> T:
    """What is read, as soon as it is good."""
    with anyio.move_on_after(PATIENCE_SECONDS):
        while True:
            seen = await read()
            if good(seen):
                return seen
            await anyio.sleep(0.05)
    raise AssertionError(f"not within {PATIENCE_SECONDS:g} s; last seen: {seen}")


def kubeconfig(directory: Path) -> str:
    return str(directory / "kubeconfig")
