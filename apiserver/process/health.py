"""The API server's health checks, with upstream's names for those that apply here.

A post-start hook is finished when the objects that it writes are in the watch cache.

Source: kube-apiserver 1.36, server/hooks.go, server/healthz.go, and the post-start hooks of controlplane.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from nominee.apiserver.cache.watch_cache import WatchCache
from nominee.apiserver.process.bootstrap import AUTHENTICATION, NAMESPACES
from nominee.apiserver.process.own_service import NAME, NAMESPACE
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.process.serving_port.health import Health
from nominee.machinery.scheduling.priority import SYSTEM_CLASSES

Check = Callable[[], None]
_READY = ("readyz",)


def add_checks(
    health: Health,
    cache: Callable[[], WatchCache | None],
    running: Check,
    repaired: Check,
    *,
    roles: bool,
    flow_control: bool,
) -> None:
    """Add all checks.

    `cache` returns None until there is a cache, `running` fails once the server shuts down, `repaired` until
    the addresses of Services were repaired; `roles` and `flow_control` say which hooks exist.
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
    for name, check in _hooks(cache, repaired, roles=roles, flow_control=flow_control):
        health.add(f"poststarthook/{name}", once(check))
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


def _hooks(
    cache: Callable[[], WatchCache | None], repaired: Check, *, roles: bool, flow_control: bool
) -> Iterable[tuple[str, Check]]:
    """Yield (hook, check that it is finished) of the hooks that write at start, in upstream's order."""

    def written(kind: AnyKind, namespace: str, *names: str) -> Check:
        return _exist(cache, kind, namespace, names)

    if flow_control:
        levels = ("catch-all", "exempt")
        consumer = written(kinds.PRIORITY_LEVEL_CONFIGURATION, "", *levels)
        yield "priority-and-fairness-config-consumer", consumer
        yield "priority-and-fairness-config-producer", written(kinds.FLOW_SCHEMA, "", *levels)
    yield "start-system-namespaces-controller", written(kinds.NAMESPACE, "", *NAMESPACES)
    yield "start-cluster-authentication-info-controller", written(kinds.CONFIG_MAP, *AUTHENTICATION)
    yield "start-service-ip-repair-controllers", repaired
    if roles:
        yield "rbac/bootstrap-roles", written(kinds.CLUSTER_ROLE_BINDING, "", "cluster-admin")
    classes = written(kinds.PRIORITY_CLASS, "", *SYSTEM_CLASSES)
    yield "scheduling/bootstrap-system-priority-classes", classes
    yield "bootstrap-controller", written(kinds.SERVICE, NAMESPACE, NAME)


def _exist(
    cache: Callable[[], WatchCache | None], kind: AnyKind, namespace: str, names: Iterable[str]
) -> Check:
    def check() -> None:
        found = cache()
        if found is None or any(found.get(kind, namespace, name) is None for name in names):
            raise RuntimeError("not finished")

    return check
