"""The REST front: an ASGI application. Each HTTP request is one request through the chain."""

from __future__ import annotations

from dataclasses import dataclass, field

from nominee.apiserver.access.service_accounts import ServiceAccountTokens
from nominee.apiserver.chain.chain import chain
from nominee.apiserver.chain.filters import Dependencies
from nominee.apiserver.chain.request import ClientGone
from nominee.apiserver.fronts.rest.discovery.meta_paths import MetaPaths
from nominee.apiserver.fronts.rest.health.components import ComponentSource
from nominee.apiserver.fronts.rest.http.messages import Answer, Message, Receive, Request, Send
from nominee.apiserver.fronts.rest.http.target import parse
from nominee.apiserver.fronts.rest.nodes.node_proxy import NodeSource
from nominee.apiserver.fronts.rest.own_handlers import OwnHandlers
from nominee.apiserver.fronts.rest.request import RestRequest
from nominee.apiserver.objects.usage import UsageSource
from nominee.machinery.features.gates import Version
from nominee.machinery.process.serving_port.health import TEXT, Health


@dataclass(frozen=True, slots=True)
class FrontOptions:
    """The options of the REST front.

    `health` are the server's checks, `accounts` issues tokens; `usage` is for metrics.k8s.io, `nodes` for
    nodes/proxy, `components` for ComponentStatuses.
    """

    version: Version
    address: str = ""
    health: Health = field(default_factory=Health)
    usage: UsageSource | None = None
    nodes: NodeSource | None = None
    components: ComponentSource | None = None
    accounts: ServiceAccountTokens | None = None


class RestFront:
    """The ASGI application that serves a registry."""

    def __init__(self, server: Dependencies, options: FrontOptions) -> None:
        self.address = options.address
        self._chain = chain(server)
        paths = MetaPaths(options.version, lambda: self.address, options.health, options.accounts)
        self._own = OwnHandlers(
            paths, server.clock, server.access, options.usage, options.nodes, options.components
        )
        self._version, self._clock = options.version, server.clock

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"this port serves HTTP only, not {scope['type']}")
        http = Request(scope, receive)
        if not http.is_well_encoded:
            # As Go's HTTP server answers, before any handler.
            await Answer(b"400 Bad Request", 400, TEXT, headers={"connection": "close"}).send(send)
            return
        try:
            target = parse(http.path)
            request = RestRequest(http, target, send, self._own.of, version=self._version, clock=self._clock)
            await self._chain(request)
        except ClientGone:
            return
