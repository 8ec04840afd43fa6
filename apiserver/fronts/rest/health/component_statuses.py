"""GETs of ComponentStatuses, which are checked when a client asks.

Source: kube-apiserver 1.36, pkg/registry/core/componentstatus/rest.go.
"""

from __future__ import annotations

import anyio

from nominee.apiserver.chain import problems
from nominee.apiserver.fronts.rest.answers import tables
from nominee.apiserver.fronts.rest.answers.responses import Encoder
from nominee.apiserver.fronts.rest.health.components import NAMES, ComponentSource
from nominee.apiserver.fronts.rest.http.media import OBJECTS, PARTIAL, PARTIAL_LIST, STREAMS, TABLE, negotiate
from nominee.apiserver.fronts.rest.http.messages import Answer, Request
from nominee.apiserver.fronts.rest.http.target import Target
from nominee.apiserver.kinds.core.component_statuses import COMPONENT_STATUS, HEALTHY
from nominee.apiserver.objects.cached_object import CachedObject, never_stored
from nominee.apiserver.objects.list_options import parse_selectors, predicate_of
from nominee.apiserver.objects.requests import ListPage
from nominee.apiserver.objects.selectable_fields import METADATA
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import core


async def answer(request: Request, target: Target, source: ComponentSource, now: float) -> Answer:
    """Return one or all; `now` in seconds since the epoch.

    Raises: StatusError 400, 404, 405, 406; 500 for an unknown name, as upstream.
    """
    if target.subresource or target.namespace:
        raise problems.not_served()
    if request.method != "GET" or request.flag("watch") or target.watch:
        raise problems.method_not_allowed()
    shown = frozenset({TABLE, PARTIAL if target.name else PARTIAL_LIST})
    media = negotiate(request.header("accept"), shown=shown)
    if media is None:
        raise problems.not_acceptable(OBJECTS if target.name else STREAMS)
    if media.shown_as == TABLE:
        tables.check(request.query_value("includeObject"))
    encoder = Encoder(request, media, now)
    if target.name:
        if target.name not in NAMES:
            raise StatusError(500, "", f"Component not found: {target.name}")
        return encoder.object(await _status(source, target.name))
    selectors = parse_selectors(request.query_value("labelSelector"), request.query_value("fieldSelector"))
    selects = predicate_of(selectors, METADATA)
    found: dict[str, CachedObject] = {}

    async def check(name: str) -> None:
        found[name] = await _status(source, name)

    async with anyio.create_task_group() as group:
        for name in NAMES:
            group.start_soon(check, name)
    items = [found[name] for name in NAMES if selects is None or selects(found[name])]
    return encoder.page(COMPONENT_STATUS, ListPage(items, ""))


async def _status(source: ComponentSource, name: str) -> CachedObject:
    checked = await source.check(name)
    made = core.ComponentStatus()
    made.metadata.name = name
    made.conditions.add(
        type=HEALTHY,
        status="True" if checked.healthy else "False",
        message=checked.message,
        error=checked.error,
    )
    return never_stored(COMPONENT_STATUS, made, name=name)
