"""`nodes/NAME/proxy/PATH`: the response of the node's kubelet.

The client needs nodes/proxy; the finer resources of KubeletFineGrainedAuthz (nodes/healthz, nodes/metrics,
nodes/pods) are checked by a kubelet whose own port a client uses (docs/design/011).

Source: kube-apiserver 1.36, pkg/registry/core/node/rest (ProxyREST), pkg/registry/core/node/strategy.go
(ResourceLocation).
"""

from __future__ import annotations

from typing import Protocol
from urllib.parse import quote

from nominee.apiserver.chain.proxy_names import proxied_name_and_port
from nominee.apiserver.fronts.rest.http.messages import Answer, Request
from nominee.apiserver.fronts.rest.http.target import Target
from nominee.apiserver.fronts.rest.nodes.kubelets import Fetched
from nominee.apiserver.objects.requests import Get, RegistryAPI
from nominee.machinery.api import errors, kinds
from nominee.machinery.process.serving_port.health import HEADERS, TEXT

KUBELET_PORT = "10250"


class NodeSource(Protocol):
    """Access to kubelets."""

    async def of_node(self, node: str, path: str) -> Fetched | None: ...


async def answer(request: Request, target: Target, registry: RegistryAPI, nodes: NodeSource) -> Answer:
    """Return the kubelet's response.

    Raises: StatusError 400, 404, 503.
    """
    name, port = proxied_name_and_port("node", target.name)
    node = (await registry.perform(Get(kinds.NODE, "", name, resource_version="0"))).message
    own = node.status.daemonEndpoints.kubeletEndpoint.Port
    if port not in ("", KUBELET_PORT, str(own)):
        raise _unreachable(f"the kubelet of node {name} is all that listens; not port {port}")
    if request.method not in ("GET", "HEAD"):
        return Answer(b"405: Method Not Allowed", 405, TEXT)
    query = request.scope["query_string"].decode("latin-1")
    path = quote(target.rest) + (f"?{query}" if query else "")
    try:
        found = await nodes.of_node(name, path)
    except (OSError, ValueError) as error:
        raise _unreachable(str(error)) from None
    if found is None:
        raise _unreachable(f"no kubelet carries node {name}")
    headers = dict(HEADERS) if found.content_type == TEXT else {}
    return Answer(found.body, found.code, found.content_type, headers=headers)


def _unreachable(problem: str) -> errors.StatusError:
    return errors.service_unavailable(f"error trying to reach service: {problem}")
