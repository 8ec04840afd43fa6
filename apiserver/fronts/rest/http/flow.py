"""Priority and fairness over REST: the seats that a request takes, its headers, and the 429."""

from __future__ import annotations

from collections.abc import Callable

from nominee.apiserver.flow_control.controller import TOO_MANY, FlowControl, Ticket, TooManyRequests
from nominee.apiserver.fronts.rest.http.messages import Answer, Request
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.list_options import EXACT

SCHEMA_HEADER = "x-kubernetes-pf-flowschema-uid"
LEVEL_HEADER = "x-kubernetes-pf-prioritylevel-uid"
Width = Callable[[int], int]
_LISTS = frozenset({"list", "deletecollection"})


def headers(ticket: Ticket | None) -> dict[str, str]:
    """Return the headers with the uids of a request's flow schema and priority level."""
    if ticket is None:
        return {}
    found = {SCHEMA_HEADER: ticket.schema_uid, LEVEL_HEADER: ticket.level_uid}
    return {name: uid for name, uid in found.items() if uid}


def too_many_requests(error: TooManyRequests) -> Answer:
    """Return the 429 as upstream's filter writes it: plain text, no Status."""
    headers = {"retry-after": str(error.retry_after_seconds), "x-content-type-options": "nosniff"}
    return Answer(f"{TOO_MANY}\n".encode(), 429, "text/plain; charset=utf-8", headers=headers)


def width(control: FlowControl, request: Request, asked: Attributes) -> Width | None:
    """Return the function of a list's seats for `FlowControl.arrive`; None for one seat."""
    watch = asked.verb == "watch"
    if not (asked.verb in _LISTS or (watch and request.flag("sendInitialEvents"))):
        return None
    selector = request.query_value("fieldSelector")
    if selector.startswith("metadata.name="):
        return None
    limit = 0
    if request.query_value("limit").isdecimal():
        limit = int(request.query_value("limit")[:9])
    version = request.query_value("resourceVersion")
    exact = request.query_value("resourceVersionMatch") == EXACT or (limit and version not in ("", "0"))
    return control.list_seats(
        asked,
        limit=limit,
        from_cache=watch or not (exact or request.query_value("continue")),
        selects=bool(selector or request.query_value("labelSelector")),
    )
