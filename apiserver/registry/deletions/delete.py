"""DELETE of an object: admission, the strategy's rules, then `deletion` or the namespace's own.

Source: kube-apiserver 1.36, registry/generic/registry/store.go (Delete).
"""

from __future__ import annotations

from nominee.apiserver.admission.interface import AdmissionRequest
from nominee.apiserver.kinds import conversion
from nominee.apiserver.kinds.table import rules_of, strategy_of
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import Delete
from nominee.apiserver.registry.body_checks import check_segment
from nominee.apiserver.registry.context import RegistryContext
from nominee.apiserver.registry.deletions import namespace_deletion
from nominee.apiserver.registry.deletions.deletion import Deletion
from nominee.machinery.api import errors


async def delete(context: RegistryContext, request: Delete) -> tuple[CachedObject, bool]:
    """Delete an object at once or gracefully; returns it, and whether it is gone.

    Raises: StatusError 400, 403, 404, 409, 422.
    """
    kind, namespace, name, options = request.kind, request.namespace, request.name, request.options
    check_segment(name)
    strategy = strategy_of(kind)
    env = context.environment(request.origin)
    if context.admission.handling(kind, "DELETE", ""):
        await context.admission.admit(
            AdmissionRequest("DELETE", kind, namespace, name, "", None, origin=request.origin)
        )
    problem = strategy.undeletable(name)
    if problem:
        raise errors.forbidden(kind, name, problem)
    if rules_of(kind).has_content:
        found, gone = await namespace_deletion.delete(context.store, strategy, name, options, env)
    else:
        where = namespace if kind.namespaced else ""
        found, gone = await Deletion(context.store, strategy, where, name, options, env).run()
    if gone:
        await context.release(strategy.kind, found, dry_run=bool(options.dryRun))
    await context.settle(strategy.kind, found)
    return conversion.convert_stored(kind, found), gone
