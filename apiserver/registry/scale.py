"""The scale subresource: autoscaling/v1's Scale over a workload's replicas and selector.

Source: kube-apiserver 1.36, registry/apps/replicaset/storage (ScaleREST).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from nominee.apiserver.kinds.autoscaling.scales import SCALE
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import Get, Patch, PatchKind, Update, WriteOptions
from nominee.apiserver.registry import read, rules
from nominee.apiserver.registry.body_checks import check_name, check_namespace
from nominee.apiserver.registry.context import RegistryContext, Target
from nominee.apiserver.registry.writes import patching, tracking
from nominee.apiserver.registry.writes.update import change_object
from nominee.apiserver.schema import version_fields
from nominee.apiserver.validation import field, names
from nominee.apiserver.validation.objects import metadata
from nominee.machinery.api import errors
from nominee.machinery.api.errors import GroupResource, StatusError
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.objects import copy_of, resource_version_number
from nominee.machinery.api.pb import meta
from nominee.machinery.api.selectors import LabelSelector, SelectorError
from nominee.machinery.wire import envelope
from nominee.pb.k8s.io.api.autoscaling.v1 import generated_pb2 as autoscaling


def of(obj: Any) -> autoscaling.Scale:
    """Return a workload's Scale."""
    made = autoscaling.Scale()
    metadata = obj.metadata
    made.metadata.name, made.metadata.namespace = metadata.name, metadata.namespace
    made.metadata.uid, made.metadata.resourceVersion = metadata.uid, metadata.resourceVersion
    made.metadata.creationTimestamp.CopyFrom(metadata.creationTimestamp)
    made.spec.replicas = obj.spec.replicas
    made.status.replicas = obj.status.replicas
    made.status.selector = _selector(obj.spec.selector)
    return made


def as_object(scale: autoscaling.Scale) -> CachedObject:
    """Return a Scale as the fronts encode objects; its revision is the workload's."""
    metadata = scale.metadata
    revision = resource_version_number(metadata.resourceVersion)
    metadata.resourceVersion = ""
    stored = envelope.encode(scale, SCALE)
    metadata.resourceVersion = str(revision)
    return CachedObject(SCALE, metadata.namespace, metadata.name, revision, stored=stored, message=scale)


def _selector(selector: Any) -> str:
    """Return a workload's selector as text: a map for a ReplicationController, else a LabelSelector."""
    if isinstance(selector, meta.LabelSelector):
        try:
            return str(LabelSelector.from_message(selector))
        except SelectorError as error:
            raise StatusError(500, "", str(error)) from None
    return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))


async def get(context: RegistryContext, request: Get) -> CachedObject:
    """Return a workload's Scale. Raises: StatusError 400, 404."""
    found = await read.get(context, Get(request.kind, request.namespace, request.name))
    return as_object(of(found.message))


async def update(context: RegistryContext, request: Update, warnings: list[str]) -> CachedObject:
    """Replace a Scale. Raises: StatusError 400, 404, 409, 422."""
    target, options = _workload(context, request), request.options
    body = cast("autoscaling.Scale", request.body)
    rules.check_options("UpdateOptions", options)
    _check_place(target, body)
    return await _write(context, target, options, warnings, lambda _live: body)


async def patch(context: RegistryContext, request: Patch, warnings: list[str]) -> CachedObject:
    """Patch a Scale, on the newest version. Raises: StatusError 400, 404, 409, 422."""
    target, options = _workload(context, request), request.options
    patch_kind, data = request.patch_kind, request.data
    applies = patch_kind is PatchKind.APPLY
    rules.check_options("PatchOptions", options, force=applies)
    if applies:
        return await _apply(context, target, data, options, warnings)
    validation = patching.validation_of(options, version_fields.TABLE_VERSION)
    document = patching.parse(patch_kind, data, validation)

    def changed(live: autoscaling.Scale) -> autoscaling.Scale:
        new: autoscaling.Scale = patching.apply(SCALE, patch_kind, document, live, validation)
        _check_place(target, new)
        return new

    try:
        return await _write(context, target, options, warnings, changed)
    finally:
        warnings.extend(patching.warnings(validation))


def _workload(context: RegistryContext, request: Update | Patch) -> Target:
    return context.target(request.kind, request.namespace, request.name, "")


def _check_place(target: Target, scale: autoscaling.Scale) -> None:
    """Check that a Scale has its workload's namespace and name. Raises: StatusError 400."""
    check_namespace(target.strategy, target.namespace, scale.metadata)
    check_name(target.name, scale.metadata)


def _check(kind: AnyKind, live: Any, scale: autoscaling.Scale) -> None:
    """Check that a Scale is valid and belongs to this workload.

    Raises: StatusError 409, 422.
    Source: kube-apiserver 1.36, ScaleREST (scaleUpdatedObjectInfo).
    """
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
    context: RegistryContext,
    target: Target,
    options: WriteOptions,
    warnings: list[str],
    make: Callable[[autoscaling.Scale], autoscaling.Scale],
) -> CachedObject:
    """Set a workload's replicas to those of the Scale that `make` returns for the newest one."""

    def change(live: Any, new: Any, now: meta.Time) -> None:
        before = of(live)
        after = make(before)
        _check(target.kind, live, after)
        _take_over(new, after)
        if not live.metadata.managedFields:
            return
        from nominee.apiserver.managed_fields import scaling

        scaling.track(tracking.endpoint(target.kind), live, new, before, of(new), tracking.who(options, now))

    return await _change_workload(context, target, options, warnings, change)


async def _apply(
    context: RegistryContext, target: Target, data: bytes, options: WriteOptions, warnings: list[str]
) -> CachedObject:
    """Apply a Scale: the owners of the workload's replicas are the Scale's."""
    from nominee.apiserver.managed_fields import scaling

    config = tracking.configuration(data)

    def change(live: Any, new: Any, now: meta.Time) -> None:
        parent, who = tracking.endpoint(target.kind), tracking.who(options, now)
        made = scaling.apply(parent, live, of(live), config.document, who, force=bool(options.force))
        tracking.check_duplicates(config, options)
        warnings[:] = tracking.duplicate_warnings(config, options)
        _check_place(target, made)
        _check(target.kind, live, made)
        _take_over(new, made)
        scaling.take_back(parent, live, new, made)

    return await _change_workload(context, target, options, warnings, change)


def _take_over(new: Any, scale: autoscaling.Scale) -> None:
    """Copy the fields of a Scale into the workload; storage compares the resource version."""
    new.spec.replicas = scale.spec.replicas
    new.metadata.resourceVersion = scale.metadata.resourceVersion


async def _change_workload(
    context: RegistryContext,
    target: Target,
    options: WriteOptions,
    warnings: list[str],
    change: Callable[[Any, Any, meta.Time], None],
) -> CachedObject:
    """Change a workload by `change(live, new, now)`, which sets replicas and managedFields of `new`."""
    now = context.environment(options.origin).now

    async def changed(current: CachedObject) -> Any:
        new = copy_of(current.message)
        context.complete(target.kind, new)
        change(current.message, new, now)
        return new

    workload = await change_object(context, target, changed, options, warnings)
    return as_object(of(workload.message))
