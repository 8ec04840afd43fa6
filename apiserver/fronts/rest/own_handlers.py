"""Handlers of requests that only REST serves: paths about the server, reviews, metrics.k8s.io, nodes/proxy.

Also of requests without a handler, which are refused only after authorization.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from nominee.apiserver.access.access import OPEN, Access
from nominee.apiserver.chain import problems
from nominee.apiserver.chain.handlers import BINDING
from nominee.apiserver.chain.request import OwnHandler
from nominee.apiserver.chain.results import Result
from nominee.apiserver.chain.reviews import review
from nominee.apiserver.fronts.rest import admission_configuration
from nominee.apiserver.fronts.rest.discovery import groups as discovery
from nominee.apiserver.fronts.rest.discovery import meta_paths
from nominee.apiserver.fronts.rest.discovery.groups import Virtual
from nominee.apiserver.fronts.rest.discovery.meta_paths import MetaPaths
from nominee.apiserver.fronts.rest.health import component_statuses
from nominee.apiserver.fronts.rest.health.components import ComponentSource
from nominee.apiserver.fronts.rest.http.messages import Answer
from nominee.apiserver.fronts.rest.http.target import Target
from nominee.apiserver.fronts.rest.nodes import node_proxy
from nominee.apiserver.fronts.rest.nodes.node_proxy import NodeSource
from nominee.apiserver.fronts.rest.request import RestRequest
from nominee.apiserver.kinds.strategy import read_only
from nominee.apiserver.objects.requests import Act, RegistryAPI
from nominee.apiserver.objects.usage import UsageSource
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind, Kind
from nominee.machinery.process.serving_port.health import HEADERS, NOT_FOUND, TEXT
from nominee.machinery.runtime.clock import Clock
from nominee.pb.k8s.io.api.authentication.v1 import generated_pb2 as authentication
from nominee.pb.k8s.io.api.authorization.v1 import generated_pb2 as authorization

_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
_OF_COLLECTIONS = frozenset({"GET", "POST", "DELETE"})


@dataclass(frozen=True, slots=True)
class OwnHandlers:
    """Chooses the handler of a request that the chain's table does not have."""

    paths: MetaPaths
    clock: Clock
    access: Access = OPEN
    usage: UsageSource | None = None
    nodes: NodeSource | None = None
    components: ComponentSource | None = None

    def of(self, request: RestRequest, target: Target | None) -> OwnHandler | None:
        """Return the handler of a request; None for one of the table's."""
        if target is None:
            return partial(self._path, request)
        kind = target.kind
        if kind is None:
            return partial(self._virtual, request, target)
        if kind.read_only and request.http.method != "GET":
            return partial(_read_only, kind)
        if kind is kinds.NODE and target.subresource == "proxy" and self.nodes is not None:
            return partial(self._node, request, target, self.nodes)
        if target.subresource and target.subresource not in kind.subresources:
            return None
        if target.rest:
            return _not_served
        method = request.http.method
        if target.collection:
            allowed = method in _OF_COLLECTIONS
            if method == "POST" and kind.namespaced and not target.namespace:
                allowed = False
        else:
            allowed = method in _METHODS and (method != "POST" or bool(target.subresource))
        return None if allowed else _method_not_allowed

    async def _path(self, request: RestRequest, registry: RegistryAPI) -> Result:
        """Answer a request for a path that is about the server."""
        answer = await self.paths.answer(request.http)
        return answer if answer is not None else _not_found(request.http.path)

    async def _node(
        self, request: RestRequest, target: Target, nodes: NodeSource, registry: RegistryAPI
    ) -> Result:
        return await node_proxy.answer(request.http, target, registry, nodes)

    async def _virtual(self, request: RestRequest, target: Target, registry: RegistryAPI) -> Result:
        """Answer a request about a resource that is not stored."""
        if not meta_paths.is_routed(request.http.path):
            return _not_found(request.http.path)
        found = discovery.virtual(target.group, target.version, target.resource)
        if found is not None and found.group == "metrics.k8s.io" and self.usage is not None:
            from nominee.apiserver.fronts.rest.nodes.resource_metrics import ResourceMetrics

            return await ResourceMetrics(registry, self.usage).answer(request.http, target)
        if found is not None and found.kind == "ComponentStatus" and self.components is not None:
            return await component_statuses.answer(request.http, target, self.components, self.clock.now())
        if found is not None and found.group == admission_configuration.GROUP and not target.namespace:
            return admission_configuration.answer(request.http, found, target)
        if found is None or target.name or (found.namespaced != bool(target.namespace)):
            raise problems.not_served()
        if request.http.method != "POST":
            raise problems.method_not_allowed()
        if found.kind == "Binding":
            return await self._bind(request, registry)
        return await review(request, _review_kind(found), self.access, self.clock)

    async def _bind(self, request: RestRequest, registry: RegistryAPI) -> Result:
        """POST of a Binding to /bindings: its own name is the pod's."""
        request.prepare()
        options = request.write_options("CreateOptions")
        body = await request.body(BINDING)
        await registry.perform(
            Act(kinds.POD, request.namespace, body.metadata.name, "binding", body, options)
        )
        return request.done()


@cache
def _review_kind(virtual: Virtual) -> AnyKind:
    """Return the kind of a review, for its body."""
    module: Any = authentication if virtual.group == "authentication.k8s.io" else authorization
    message = getattr(module, virtual.kind)
    return Kind(virtual.group, virtual.version, virtual.kind, virtual.plural, message, message)


def _not_found(path: str) -> Answer:
    """Return the 404 of an unknown path: plain text outside of /api and /apis. Raises: StatusError 404."""
    if meta_paths.is_routed(path):
        raise problems.not_served()
    return Answer(NOT_FOUND.text.encode(), NOT_FOUND.code, TEXT, headers=dict(HEADERS))


async def _read_only(kind: AnyKind, registry: RegistryAPI) -> Result:
    raise read_only(kind)


async def _not_served(registry: RegistryAPI) -> Result:
    raise problems.not_served()


async def _method_not_allowed(registry: RegistryAPI) -> Result:
    raise problems.method_not_allowed()
