"""DELETE of a namespace, which the namespace controller finishes.

Source: kube-apiserver 1.36, registry/core/namespace.
"""

from __future__ import annotations

from typing import Any

from nominee.apiserver.kinds.strategy import Environment, Strategy
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.registry.deletions.deletion import (
    Deletion,
    check_preconditions,
    garbage_finalizers,
    validate_options,
)
from nominee.apiserver.registry.store import Preconditions, Store
from nominee.machinery.api.kinds import NAMESPACE
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core, meta


async def delete(
    store: Store, strategy: Strategy[core.Namespace], name: str, options: meta.DeleteOptions, env: Environment
) -> tuple[CachedObject, bool]:
    """Mark a namespace Terminating; a DELETE after its content is gone removes it.

    Returns: the namespace, and whether it is gone.
    Raises: StatusError 404, 409, 422.
    """
    validate_options(options)
    current = await store.read(NAMESPACE, "", name)
    namespace: core.Namespace = current.message
    check_preconditions(strategy, namespace.metadata, options)
    uid = namespace.metadata.uid
    if not namespace.metadata.HasField("deletionTimestamp"):

        async def mutate(found: CachedObject) -> Any:
            new = copy_of(found.message)
            if not new.metadata.HasField("deletionTimestamp"):
                new.metadata.deletionTimestamp.CopyFrom(env.now)
            new.status.phase = "Terminating"
            finalizers = garbage_finalizers(strategy, list(new.metadata.finalizers), options)
            new.metadata.ClearField("finalizers")
            new.metadata.finalizers.extend(finalizers)
            return new

        preconditions = Preconditions(uid=uid)
        marked = await store.update(
            NAMESPACE, "", name, mutate, preconditions=preconditions, dry_run=bool(options.dryRun), at=current
        )
        return marked, False
    if namespace.spec.finalizers:
        return current, False
    return await Deletion(store, strategy, "", name, options, env).run()
