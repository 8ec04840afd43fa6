"""Server-side apply of a configuration to an object; creates an object that does not exist.

Source: kube-apiserver 1.36, endpoints/handlers/patch.go (applyPatcher).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from nominee.apiserver.kinds import conversion
from nominee.apiserver.kinds.strategy import Environment
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import Patch, WriteOptions
from nominee.apiserver.registry import rules
from nominee.apiserver.registry.body_checks import check_name, check_namespace
from nominee.apiserver.registry.context import RegistryContext, Target
from nominee.apiserver.registry.writes import tracking
from nominee.apiserver.registry.writes.create import Creation
from nominee.apiserver.registry.writes.tracking import Configuration
from nominee.apiserver.registry.writes.update import change_object
from nominee.apiserver.schema import large_bodies
from nominee.apiserver.storage.interface import VALUE_BYTES_MAX
from nominee.machinery.api import errors
from nominee.machinery.api.errors import StatusError

ATTEMPTS_MAX = 5
"""Attempts of an apply to an object that other clients delete and create meanwhile."""


async def apply(context: RegistryContext, request: Patch, warnings: list[str]) -> tuple[CachedObject, bool]:
    """Apply a configuration; returns the object, and whether it was created.

    Raises: StatusError 400, 403, 404, 409, 413, 422, 500.
    """
    target, data, options = context.target_of(request), request.data, request.options
    kind = target.kind
    rules.check_options("PatchOptions", options, force=True)
    env = context.environment(options.origin)
    config = await large_bodies.decode_body(len(data), partial(tracking.configuration, data), yaml=True)
    if len(data) > VALUE_BYTES_MAX:
        await large_bodies.decode_body(len(data), partial(tracking.check_size, kind, config))

    def applied(live: Any | None) -> Any:
        return _applied(context, target, live, config, options, env)

    async def change(current: CachedObject) -> Any:
        new = applied(conversion.convert_stored(kind, current).message)
        warnings[:] = tracking.duplicate_warnings(config, options)
        return new

    for attempt in range(ATTEMPTS_MAX):
        try:
            changed = await change_object(context, target, change, options, warnings)
            return conversion.convert_stored(kind, changed), False
        except StatusError as error:
            if target.subresource or not errors.is_not_found(error):
                raise
        new = applied(None)
        warnings[:] = tracking.duplicate_warnings(config, options)
        new.metadata.resourceVersion = ""
        rules.fill_metadata(new.metadata, context.new_uid(), env)
        try:
            context.check_may_create(target, options.origin)
            creation = Creation(context, kind, target.strategy, options, env, warnings)
            made = await creation.run(new)
        except StatusError as error:
            if not errors.is_already_exists(error) or attempt + 1 == ATTEMPTS_MAX:
                raise
            continue
        return made, True
    raise AssertionError("unreachable")


def _applied(
    context: RegistryContext,
    target: Target,
    live: Any | None,
    config: Configuration,
    options: WriteOptions,
    env: Environment,
) -> Any:
    """Return the object, as stored, that the configuration makes of `live`, or of no object."""
    kind, strategy = target.kind, target.strategy
    made = tracking.apply(kind, target.subresource, live, config, options, env.now)
    new = conversion.as_stored(kind, made)
    if live is None and new.metadata.uid:
        problem = f"uid mismatch: the provided object specified uid {new.metadata.uid}"
        raise errors.conflict(kind, target.name, f"{problem}, and no existing object was found")
    check_namespace(strategy, target.namespace, new.metadata)
    check_name(target.name, new.metadata)
    context.complete(strategy.kind, new)
    return new
