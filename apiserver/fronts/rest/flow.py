"""A REST request's place among all others: what flow control is told, and the answer of one that has none."""

from __future__ import annotations

from collections.abc import Callable

from apiserver.access.attributes import Attributes
from apiserver.access.user import User
from apiserver.flow_control.controller import TOO_MANY, FlowControl, Ticket, TooManyRequests
from apiserver.fronts.rest.http import Answer, Request
from apiserver.objects.list_options import EXACT

SCHEMA_HEADER = "x-kubernetes-pf-flowschema-uid"
LEVEL_HEADER = "x-kubernetes-pf-prioritylevel-uid"
Width = Callable[[int], int]


def arrive(control: FlowControl, user: User, request: Request, asked: Attributes, *, watch: bool) -> Ticket:
    """The request's ticket; its headers are set whatever becomes of it."""
    width = None
    if asked.verb in ("list", "deletecollection") or (watch and request.flag("sendInitialEvents")):
        width = _width(control, request, asked, watch=watch)
    return control.arrive(user, asked, width)


def headers(ticket: Ticket | None) -> dict[str, str]:
    """Which schema and level a request was found to belong to, by their uids as upstream tells it."""
    if ticket is None:
        return {}
    found = {SCHEMA_HEADER: ticket.schema_uid, LEVEL_HEADER: ticket.level_uid}
    return {name: uid for name, uid in found.items() if uid}


def refused(error: TooManyRequests) -> Answer:
    """429 as upstream's filter writes it: no Status, since it has not looked at what was asked for."""
    told = {"retry-after": str(error.retry_after_seconds), "x-content-type-options": "nosniff"}
    return Answer(f"{TOO_MANY}\n".encode(), 429, "text/plain; charset=utf-8", headers=told)


def _width(control: FlowControl, request: Request, asked: Attributes, *, watch: bool) -> Width | None:
    selector = request.asked("fieldSelector")
    if selector.startswith("metadata.name="):
        return None
    limit = 0
    if request.asked("limit").isdecimal():
        limit = int(request.asked("limit")[:9])
    version = request.asked("resourceVersion")
    exact = request.asked("resourceVersionMatch") == EXACT or (limit and version not in ("", "0"))
    return control.list_seats(
        asked,
        limit=limit,
        from_cache=watch or not (exact or request.asked("continue")),
        selects=bool(selector or request.asked("labelSelector")),
    )
