"""PUT of an object, and the change that PUT, PATCH, apply and scale have in common.

Source: kube-apiserver 1.36, registry/rest/update.go, registry/generic/registry/store.go (Update).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from typing import Any

from nominee.apiserver.kinds import conversion
from nominee.apiserver.kinds.table import rules_of
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import Create, Update, WriteOptions
from nominee.apiserver.registry import rules
from nominee.apiserver.registry.body_checks import check_name, check_namespace, check_revision, check_segment
from nominee.apiserver.registry.context import RegistryContext, Target
from nominee.apiserver.registry.store import NO_PRECONDITIONS, DeleteInstead, Preconditions
from nominee.apiserver.registry.writes import tracking
from nominee.apiserver.registry.writes.create import create
from nominee.machinery.api import errors
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.objects import copy_of

Change = Callable[[CachedObject], Awaitable[Any]]
"""Return the new message for the stored object, which stays unchanged; it may be called several times."""
_NOTHING = nullcontext()


async def update(context: RegistryContext, request: Update, warnings: list[str]) -> tuple[CachedObject, bool]:
    """Replace an object; returns it, and whether it was created.

    Raises: StatusError 400, 403, 404, 409, 413, 422.
    """
    target, options = context.target_of(request), request.options
    kind, strategy, subresource = target.kind, target.strategy, target.subresource
    rules.check_options("UpdateOptions", options)
    obj = conversion.as_stored(kind, request.body)
    check_namespace(strategy, target.namespace, obj.metadata)
    check_name(target.name, obj.metadata)
    context.complete(strategy.kind, obj)
    rules.warn_of_double_owners(obj.metadata, options, warnings)
    now = context.environment(options.origin).now

    async def change(current: CachedObject) -> Any:
        new = copy_of(obj)
        tracking.update(strategy.kind, subresource, current.message, new, options, now)
        return new

    preconditions = Preconditions(uid=obj.metadata.uid)
    try:
        changed = await change_object(context, target, change, options, warnings, preconditions)
    except StatusError as error:
        if not (rules_of(kind).created_by_update and errors.is_not_found(error) and not subresource):
            raise
        if obj.metadata.resourceVersion or obj.metadata.uid:
            raise
    else:
        return conversion.convert_stored(kind, changed), False
    context.check_may_create(target, options.origin)
    return await create(context, Create(kind, target.namespace, obj, options), warnings), True


async def change_object(
    context: RegistryContext,
    target: Target,
    change: Change,
    options: WriteOptions,
    warnings: list[str],
    preconditions: Preconditions = NO_PRECONDITIONS,
) -> CachedObject:
    """Change the stored object by the endpoint's rules, and return it as stored.

    Deletes the object when the change removes its last finalizer. The strategy's warnings are added once the
    object is written.
    """
    check_segment(target.name)
    env = context.environment(options.origin)
    kind, strategy, subresource = target.kind, target.strategy, target.subresource
    stored = strategy.kind
    deleting: CachedObject | None = None
    found: Sequence[str] = ()

    async def mutate(current: CachedObject) -> Any:
        nonlocal deleting, found
        new = await change(current)
        check_revision(strategy, new.metadata, current)
        asked = context.admission_request("UPDATE", kind, new, current.message, options, subresource)
        await context.admission.admit(asked)
        double = rules.without_double_owners(new.metadata, patched=True)
        if claims is not None:
            await claims.renew(new, current.message)
        rules.before_update(strategy, new, current.message, env)
        tracking.keep_times(new, current.message)
        if options.warn:
            found = strategy.warnings(new, current.message)
            if double:
                found = [double, *found]
        await context.admission.validate(asked)
        if strategy.deleted_by_update(new, current.message):
            deleting = current
            raise DeleteInstead
        return new

    where = target.namespace if stored.namespaced else ""
    claims = None if subresource else context.claims(stored, dry_run=options.dry_run)
    async with claims or _NOTHING:
        try:
            changed = await context.store.update(
                stored,
                where,
                target.name,
                mutate,
                preconditions=preconditions,
                dry_run=options.dry_run,
                lease_seconds=context.lease_seconds(strategy),
            )
        except DeleteInstead:
            assert deleting is not None, "what is deleted instead is known"
            dry_run = options.dry_run
            # Meanwhile it may be gone, and another object have its name: that one stays.
            this = Preconditions(uid=deleting.message.metadata.uid)
            gone = await context.store.delete(
                stored, where, target.name, preconditions=this, dry_run=dry_run, at=deleting
            )
            await context.release(stored, gone, dry_run=dry_run)
            return gone
        await context.settle(stored, changed)
    warnings.extend(found)
    return changed
