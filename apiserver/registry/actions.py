"""Subresources that act on an object instead of changing it: binding, eviction, token.

Source: kube-apiserver 1.36, pkg/registry/core/pod/storage and serviceaccount/storage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nominee.apiserver.admission.interface import Request
from nominee.apiserver.kinds.table import strategy_of
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import WriteOptions
from nominee.apiserver.registry import token_requests
from nominee.apiserver.registry.body_checks import check_namespace, check_segment
from nominee.apiserver.registry.context import RegistryContext
from nominee.apiserver.registry.pods import binding as bindings
from nominee.apiserver.registry.pods.eviction import EvictionRequest
from nominee.apiserver.registry.update import change_object
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import core, policy
from nominee.pb.k8s.io.api.authentication.v1 import generated_pb2 as authentication


async def bind(
    context: RegistryContext, namespace: str, name: str, binding: core.Binding, options: WriteOptions
) -> CachedObject:
    """Bind a pod to a node; returns the pod. Raises: StatusError 400, 403, 404, 409, 500."""
    check_segment(name)
    check_namespace(strategy_of(kinds.POD), namespace, binding.metadata)
    env = context.environment()
    await _admit(context, kinds.POD, namespace, name, "binding", binding)
    return await bindings.bind(context.store, namespace, name, binding, env, dry_run=options.dry_run)


async def evict(
    context: RegistryContext, namespace: str, name: str, eviction: policy.Eviction, options: WriteOptions
) -> CachedObject:
    """Evict a pod; returns it as deleted or marked. Raises: StatusError 400, 403, 404, 409, 422, 429, 500."""
    check_segment(name)
    strategy = strategy_of(kinds.POD)
    check_namespace(strategy, namespace, eviction.metadata)
    env = context.environment()
    await _admit(context, kinds.POD, namespace, name, "eviction", eviction)

    async def change_status(
        namespace: str, name: str, change_in_place: Callable[[Any], None], dry_run: bool
    ) -> CachedObject:
        async def change(current: CachedObject) -> core.Pod:
            new = core.Pod()
            new.CopyFrom(current.message)
            change_in_place(new)
            return new

        target = context.target(kinds.POD, namespace, name, "status")
        return await change_object(context, target, change, WriteOptions(dry_run=dry_run), [])

    request = EvictionRequest(context.store, strategy, change_status, context.clock, env, namespace, name)
    return await request.run(eviction, dry_run=options.dry_run)


async def issue_token(
    context: RegistryContext, namespace: str, name: str, body: authentication.TokenRequest
) -> CachedObject:
    """Issue a service account's token; returns it in the request. Raises: StatusError 400, 404, 409, 422."""
    if context.accounts is None:
        raise errors.unknown_resource()
    token_requests.prepare(body, namespace, name)
    await _admit(context, kinds.SERVICE_ACCOUNT, namespace, name, "token", body)
    now, token_id = context.clock.now(), context.new_uid()
    return await token_requests.issue(context.accounts, context.lookups, body, now, token_id)


async def _admit(
    context: RegistryContext, kind: AnyKind, namespace: str, name: str, subresource: str, body: Any
) -> None:
    """Run all admission plugins of an action."""
    if context.admission.handling(kind, "CREATE", subresource):
        request = Request("CREATE", kind, namespace, name, subresource, body)
        await context.admission.admit(request)
        await context.admission.validate(request)
