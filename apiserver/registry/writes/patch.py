"""PATCH of an object: JSON, merge and strategic merge patches, on the newest version.

Source: kube-apiserver 1.36, endpoints/handlers/patch.go.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from nominee.apiserver.kinds import conversion
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import Patch
from nominee.apiserver.registry import rules
from nominee.apiserver.registry.body_checks import check_name, check_namespace
from nominee.apiserver.registry.context import RegistryContext
from nominee.apiserver.registry.writes import patching, tracking
from nominee.apiserver.registry.writes.update import change_object
from nominee.apiserver.schema import large_bodies


async def patch(context: RegistryContext, request: Patch, warnings: list[str]) -> CachedObject:
    """Patch an object. Raises: StatusError 400, 403, 404, 409, 413, 415, 422."""
    target, options = context.target_of(request), request.options
    patch_kind, data = request.patch_kind, request.data
    kind, strategy = target.kind, target.strategy
    rules.check_options("PatchOptions", options)
    validation = patching.validation_of(options, context.gates.version)
    now = context.environment(options.origin).now
    parse = partial(patching.parse, patch_kind, data, validation)
    document = await large_bodies.decode_body(len(data), parse)

    async def change(current: CachedObject) -> Any:
        shown = conversion.convert_stored(kind, current).message
        apply = partial(patching.apply, kind, patch_kind, document, shown, validation)
        new = conversion.as_stored(kind, await large_bodies.decode_body(len(data), apply))
        check_namespace(strategy, target.namespace, new.metadata)
        check_name(target.name, new.metadata)
        if not new.metadata.resourceVersion:
            new.metadata.resourceVersion = str(current.revision)
        context.complete(strategy.kind, new)
        tracking.update(strategy.kind, target.subresource, current.message, new, options, now)
        return new

    try:
        changed = await change_object(context, target, change, options, warnings)
    finally:
        # Also when the patch fails: an unknown field may be the reason.
        warnings.extend(patching.warnings(validation))
    return conversion.convert_stored(kind, changed)
