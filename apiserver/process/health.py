"""The API server's health checks, with upstream's names for those that apply here.

A post-start hook is finished when the objects that it writes are in the watch cache.

Source: kube-apiserver 1.36, server/hooks.go, server/healthz.go, and the post-start hooks of controlplane.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from apiserver.cache.watch_cache import WatchCache
from apiserver.process.bootstrap import NAMESPACES
from apiserver.process.own_service import NAME, NAMESPACE
from machinery.api import kinds
from machinery.api.kinds import AnyKind
from machinery.process.health import Health
from machinery.scheduling.priority import SYSTEM_CLASSES

Check = Callable[[], None]
_READY = ("readyz",)


def add_checks(
    health: Health,
    cache: Callable[[], WatchCache | None],
    running: Check,
    *,
    roles: bool,
    flow_control: bool,
) -> None:
    """Add all checks.

    `cache` returns None until there is a cache, `running` fails once the server shuts down; `roles` and
    `flow_control` say which hooks exist.
    """

    def etcd() -> None:
        found = cache()
        if found is None or not found.connected:
            raise RuntimeError("etcd does not answer, or its watch is not established")

    def loaded() -> None:
        found = cache()
        if found is None or not found.loaded:
            raise RuntimeError("the watch cache is not loaded yet")

    health.add("log", _log)
    health.add("etcd", etcd)
    health.add("etcd-readiness", etcd, _READY)
    health.add("informer-sync", loaded, _READY)
    for name in ("start-apiserver-admission-initializer", "generic-apiserver-start-informers"):
        health.add(f"poststarthook/{name}", once(loaded))
    for name, kind, namespace, objects in _written(roles=roles, flow_control=flow_control):
        health.add(f"poststarthook/{name}", once(_exist(cache, kind, namespace, objects)))
    health.add("shutdown", running, _READY)


def once(check: Check) -> Check:
    """Return a check that never fails again after it has passed, like a finished post-start hook."""
    passed = False

    def checked() -> None:
        nonlocal passed
        if not passed:
            check()
            passed = True

    return checked


def _log() -> None:
    if sys.stderr.closed:
        raise RuntimeError("the log is closed")


def _written(*, roles: bool, flow_control: bool) -> Iterable[tuple[str, AnyKind, str, tuple[str, ...]]]:
    """Yield (hook, kind, namespace, names) of the objects written at start, in upstream's order."""
    if flow_control:
        levels = ("catch-all", "exempt")
        yield "priority-and-fairness-config-consumer", kinds.PRIORITY_LEVEL_CONFIGURATION, "", levels
        yield "priority-and-fairness-config-producer", kinds.FLOW_SCHEMA, "", levels
    yield "start-system-namespaces-controller", kinds.NAMESPACE, "", NAMESPACES
    if roles:
        yield "rbac/bootstrap-roles", kinds.CLUSTER_ROLE_BINDING, "", ("cluster-admin",)
    yield (
        "scheduling/bootstrap-system-priority-classes",
        kinds.PRIORITY_CLASS,
        "",
        tuple(SYSTEM_CLASSES),
    )
    yield "bootstrap-controller", kinds.SERVICE, NAMESPACE, (NAME,)


def _exist(
    cache: Callable[[], WatchCache | None], kind: AnyKind, namespace: str, names: Iterable[str]
) -> Check:
    def check() -> None:
        found = cache()
        if found is None or any(found.get(kind, namespace, name) is None for name in names):
            raise RuntimeError("not finished")

    return check
