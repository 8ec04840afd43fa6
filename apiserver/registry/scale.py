"""The scale subresource: autoscaling/v1's Scale over a workload's replicas and selector.

Source: kube-apiserver 1.36, registry/apps/replicaset/storage (ScaleREST).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from k8s.io.api.autoscaling.v1 import generated_pb2 as autoscaling

from apiserver.kinds.autoscaling.scales import SCALE
from apiserver.kinds.table import strategy_of
from apiserver.objects.requests import PatchKind, RegistryAPI, WriteOptions
from apiserver.registry import patching, rules, tracking
from apiserver.registry.body_checks import check_name, check_namespace
from apiserver.schema import version_fields
from apiserver.validation import field, metadata, names
from machinery.api import errors
from machinery.api.errors import GroupResource, StatusError
from machinery.api.kinds import Kind
from machinery.api.pb import meta
from machinery.api.selectors import LabelSelector, SelectorError


def of(obj: Any) -> autoscaling.Scale:
    """A workload's Scale."""
    made = autoscaling.Scale()
    metadata = obj.metadata
    made.metadata.name, made.metadata.namespace = metadata.name, metadata.namespace
    made.metadata.uid, made.metadata.resourceVersion = metadata.uid, metadata.resourceVersion
    made.metadata.creationTimestamp.CopyFrom(metadata.creationTimestamp)
    made.spec.replicas = obj.spec.replicas
    made.status.replicas = obj.status.replicas
    made.status.selector = _selector(obj.spec.selector)
    return made


def _selector(selector: Any) -> str:
    """A replication controller's selector is a map, all others' a LabelSelector."""
    if isinstance(selector, meta.LabelSelector):
        try:
            return str(LabelSelector.from_message(selector))
        except SelectorError as error:
            raise StatusError(500, "", str(error)) from None
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))


async def put(
    registry: RegistryAPI,
    kind: Kind[Any],
    namespace: str,
    name: str,
    scale: Any,
    options: WriteOptions,
) -> autoscaling.Scale:
    """PUT of a Scale. Raises 400, 404, 409, 422."""
    rules.check_options("UpdateOptions", options)
    _check_place(kind, namespace, name, scale)
    return await _write(registry, kind, namespace, name, options, lambda _live: scale)


async def patch(
    registry: RegistryAPI,
    kind: Kind[Any],
    namespace: str,
    name: str,
    patch_kind: PatchKind,
    patch: bytes,
    options: WriteOptions,
) -> autoscaling.Scale:
    """PATCH of a Scale, applied to the newest one. Raises 400, 404, 409, 422."""
    applies = patch_kind is PatchKind.APPLY
    rules.check_options("PatchOptions", options, force=applies)
    if applies:
        return await _apply(registry, kind, namespace, name, patch, options)
    validation = patching.validation_of(options, version_fields.TABLE_VERSION)
    change = patching.parse(patch_kind, patch, validation)

    def changed(live: autoscaling.Scale) -> Any:
        new = patching.apply(SCALE, patch_kind, change, live, validation)
        _check_place(kind, namespace, name, new)
        return new

    try:
        return await _write(registry, kind, namespace, name, options, changed)
    finally:
        patching.warn(validation, options)


def _check_place(kind: Kind[Any], namespace: str, name: str, scale: autoscaling.Scale) -> None:
    """A Scale has its workload's namespace and name; 400."""
    check_namespace(strategy_of(kind), namespace, scale.metadata)
    check_name(name, scale.metadata)


def _check(kind: Kind[Any], live: Any, scale: autoscaling.Scale) -> None:
    """The Scale is valid and of this workload; 409, 422. Source: ScaleREST's scaleUpdatedObjectInfo."""
    causes = metadata.object_meta(scale.metadata, namespaced=True, name_rule=names.dns_subdomain)
    if scale.spec.replicas < 0:
        problem = "must be greater than or equal to 0"
        causes.append(field.invalid("spec.replicas", scale.spec.replicas, problem))
    if causes:
        raise errors.invalid(SCALE, live.metadata.name, causes)
    uid = live.metadata.uid
    if scale.metadata.uid not in ("", uid):
        problem = f"UID in precondition: {scale.metadata.uid}, UID in object meta: {uid}"
        resource = GroupResource(kind.group, f"{kind.plural}/scale")
        raise errors.conflict(resource, live.metadata.name, f"Precondition failed: {problem}")


async def _write(
    registry: RegistryAPI,
    kind: Kind[Any],
    namespace: str,
    name: str,
    options: WriteOptions,
    make: Callable[[autoscaling.Scale], Any],
) -> autoscaling.Scale:
    """Change a workload's replicas to those of the Scale that `make` makes of the newest one."""

    def track(live: Any, new: Any, now: meta.Time) -> None:
        before = of(live)
        after = make(before)
        _check(kind, live, after)
        _take_over(new, after)
        if not live.metadata.managedFields:
            return
        from apiserver.managed_fields import scaling
        from apiserver.managed_fields.manager import Endpoint

        scaling.track(Endpoint(kind), live, new, before, of(new), tracking.who(options, now))

    return await _patched(registry, kind, namespace, name, options, track)


async def _apply(
    registry: RegistryAPI, kind: Kind[Any], namespace: str, name: str, patch: bytes, options: WriteOptions
) -> autoscaling.Scale:
    """Server-side apply of a Scale: the owners of the workload's replicas are the Scale's."""
    from apiserver.managed_fields import scaling
    from apiserver.managed_fields.manager import Endpoint

    config, duplicates = tracking.configuration(patch)

    def track(live: Any, new: Any, now: meta.Time) -> None:
        parent, who = Endpoint(kind), tracking.who(options, now)
        made = scaling.apply(parent, live, of(live), config, who, force=bool(options.force))
        tracking.tell_duplicates(duplicates, options)
        _check_place(kind, namespace, name, made)
        _check(kind, live, made)
        _take_over(new, made)
        scaling.take_back(parent, live, new, made)

    return await _patched(registry, kind, namespace, name, options, track)


def _take_over(new: Any, scale: autoscaling.Scale) -> None:
    """Move what a Scale says into the workload; storage compares the resource version."""
    new.spec.replicas = scale.spec.replicas
    new.metadata.resourceVersion = scale.metadata.resourceVersion


async def _patched(
    registry: RegistryAPI,
    kind: Kind[Any],
    namespace: str,
    name: str,
    options: WriteOptions,
    track: Callable[[Any, Any, meta.Time], None],
) -> autoscaling.Scale:
    """The change itself is done by `track`, on the newest version of the workload."""
    plain = replace(options, force=None, field_validation="Ignore", track=track)
    changed = await registry.patch(kind, namespace, name, "", PatchKind.MERGE, b"{}", plain)
    return of(changed.message)
