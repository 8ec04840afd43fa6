"""Subresources that act on an object instead of changing it: binding, eviction, token.

Source: kube-apiserver 1.36, pkg/registry/core/pod/storage and serviceaccount/storage.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from nominee.apiserver.admission.interface import AdmissionRequest
from nominee.apiserver.kinds.table import strategy_of
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import Act, WriteOptions
from nominee.apiserver.registry import token_requests
from nominee.apiserver.registry.body_checks import check_namespace, check_segment
from nominee.apiserver.registry.context import RegistryContext
from nominee.apiserver.registry.pods import binding as bindings
from nominee.apiserver.registry.pods.eviction import EvictionRequest
from nominee.apiserver.registry.writes.update import change_object
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.objects import copy_of
from nominee.machinery.api.pb import core, policy
from nominee.pb.k8s.io.api.authentication.v1 import generated_pb2 as authentication


async def bind(context: RegistryContext, request: Act) -> CachedObject:
    """Bind a pod to a node; returns the pod. Raises: StatusError 400, 403, 404, 409, 500."""
    binding = cast("core.Binding", request.body)
    check_segment(request.name)
    check_namespace(strategy_of(kinds.POD), request.namespace, binding.metadata)
    env = context.environment(request.options.origin)
    await _admit(context, request)
    return await bindings.bind(
        context.store, request.namespace, request.name, binding, env, dry_run=request.options.dry_run
    )


async def evict(context: RegistryContext, request: Act) -> CachedObject:
    """Evict a pod; returns it as deleted or marked. Raises: StatusError 400, 403, 404, 409, 422, 429, 500."""
    eviction, options = cast("policy.Eviction", request.body), request.options
    check_segment(request.name)
    strategy = strategy_of(kinds.POD)
    check_namespace(strategy, request.namespace, eviction.metadata)
    env = context.environment(options.origin)
    await _admit(context, request)

    async def change_status(
        namespace: str, name: str, change_in_place: Callable[[Any], None], dry_run: bool
    ) -> CachedObject:
        async def change(current: CachedObject) -> core.Pod:
            new: core.Pod = copy_of(current.message)
            change_in_place(new)
            return new

        target = context.target(kinds.POD, namespace, name, "status")
        status_options = WriteOptions(dry_run=dry_run, origin=options.origin)
        return await change_object(context, target, change, status_options, [])

    asked = EvictionRequest(
        context.store, strategy, change_status, context.clock, env, request.namespace, request.name
    )
    return await asked.run(eviction, dry_run=options.dry_run)


async def issue_token(context: RegistryContext, request: Act) -> CachedObject:
    """Issue a service account's token; returns it in the request. Raises: StatusError 400, 404, 409, 422."""
    if context.accounts is None:
        raise errors.unknown_resource()
    body = cast("authentication.TokenRequest", request.body)
    token_requests.prepare(body, request.namespace, request.name)
    await _admit(context, request)
    now, token_id = context.clock.now(), context.new_uid()
    return await token_requests.issue(context.accounts, context.lookups, body, now, token_id)


BY_SUBRESOURCE: Final[Mapping[str, Callable[[RegistryContext, Act], Awaitable[CachedObject]]]] = {
    "binding": bind,
    "eviction": evict,
    "token": issue_token,
}


async def _admit(context: RegistryContext, asked: Act) -> None:
    """Run all admission plugins of an action."""
    kind, subresource = asked.kind, asked.subresource
    if context.admission.handling(kind, "CREATE", subresource):
        request = AdmissionRequest(
            "CREATE", kind, asked.namespace, asked.name, subresource, asked.body, origin=asked.options.origin
        )
        await context.admission.admit(request)
        await context.admission.validate(request)
