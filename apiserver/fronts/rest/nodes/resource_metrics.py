"""metrics.k8s.io/v1beta1: the usage of nodes and pods, for `kubectl top`.

Upstream, metrics-server is a server of its own behind kube-apiserver's aggregation layer, and it asks each
kubelet every 15 s. Here the API server asks the kubelets at each request: an aggregation layer would be a
second server for two resources, and would collect usage that no client reads. Objects, names and errors are
metrics-server's (0.8).
"""

from __future__ import annotations

from typing import Any, Final

from nominee.apiserver.chain import problems
from nominee.apiserver.fronts.rest.answers import documents as answers
from nominee.apiserver.fronts.rest.http.media import OBJECTS, PROTOBUF, Media, negotiate
from nominee.apiserver.fronts.rest.http.messages import Answer, Request
from nominee.apiserver.fronts.rest.http.target import Target
from nominee.apiserver.fronts.usage import nodes, pods
from nominee.apiserver.objects.requests import ListOptions, RegistryAPI
from nominee.apiserver.objects.usage import UsageSource
from nominee.machinery.api import errors
from nominee.machinery.api.errors import GroupResource, StatusError
from nominee.machinery.wire import codec
from nominee.pb.k8s.io.metrics.pkg.apis.metrics.v1beta1 import generated_pb2 as metrics

GROUP: Final = "metrics.k8s.io"
VERSION: Final = "v1beta1"
_API_VERSION: Final = f"{GROUP}/{VERSION}"


class ResourceMetrics:
    """Answers GETs of node and pod metrics."""

    def __init__(self, registry: RegistryAPI, source: UsageSource) -> None:
        self._registry = registry
        self._source = source

    async def answer(self, request: Request, target: Target) -> Answer:
        """Return node or pod metrics.

        Raises: StatusError 404, 405, 406.
        """
        if request.method != "GET" or request.flag("watch") or target.watch:
            raise problems.method_not_allowed()
        media = negotiate(request.header("accept"))
        if media is None:
            raise problems.not_acceptable(OBJECTS)
        if target.resource == "nodes" and not target.namespace:
            return await self._nodes(request, target, media)
        if target.resource == "pods" and (target.namespace or not target.name):
            return await self._pods(request, target, media)
        raise problems.not_served()

    async def _nodes(self, request: Request, target: Target, media: Media) -> Answer:
        found = await nodes(self._registry, self._source, _options(request, target))
        if target.name:
            return _one(request, media, "NodeMetrics", found, _missing("nodemetrics", target.name))
        return _list(request, media, metrics.NodeMetricsList(items=found), "NodeMetricsList")

    async def _pods(self, request: Request, target: Target, media: Media) -> Answer:
        found = await pods(self._registry, self._source, target.namespace, _options(request, target))
        if target.name:
            missing = _missing("podmetrics", f"{target.namespace}/{target.name}")
            return _one(request, media, "PodMetrics", found, missing)
        return _list(request, media, metrics.PodMetricsList(items=found), "PodMetricsList")


def _options(request: Request, target: Target) -> ListOptions:
    """Return the selection of the requested nodes or pods, whether they have usage or not."""
    selector = request.query_value("fieldSelector")
    if target.name:
        selector = f"metadata.name={target.name}"
    return ListOptions(
        label_selector=request.query_value("labelSelector"), field_selector=selector, resource_version="0"
    )


def _missing(resource_name: str, name: str) -> StatusError:
    return errors.not_found(GroupResource(GROUP, resource_name), name)


def _one(request: Request, media: Media, kind: str, found: list[Any], missing: StatusError) -> Answer:
    if not found:
        raise missing
    body = answers.of_message(media, _API_VERSION, kind, found[0], pretty=request.pretty)
    return Answer(body, 200, media.form)


def _list(request: Request, media: Media, found: Any, kind: str) -> Answer:
    if media.form == PROTOBUF:
        return Answer(answers.of_message(media, _API_VERSION, kind, found), 200, media.form)
    # No metrics are an empty list here, not Go's null.
    document = {"kind": kind, "apiVersion": _API_VERSION, **codec.to_json(found)}
    document["items"] = document["items"] or []
    return Answer(answers.encode(media, document, pretty=request.pretty), 200, media.form)
