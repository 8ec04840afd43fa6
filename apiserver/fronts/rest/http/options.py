"""Options of REST requests, from their queries."""

from __future__ import annotations

from nominee.apiserver.chain import request_options
from nominee.apiserver.fronts.rest.http.messages import Request, parse_int64
from nominee.apiserver.objects.attributes import Origin
from nominee.apiserver.objects.list_options import parse_selectors
from nominee.apiserver.objects.requests import ListOptions, WatchOptions, WriteOptions


def list_options(request: Request) -> ListOptions:
    """Return the options of a list. Raises: StatusError 400."""
    _integer(request, "timeoutSeconds")
    return ListOptions(
        label_selector=request.query_value("labelSelector"),
        field_selector=request.query_value("fieldSelector"),
        resource_version=request.query_value("resourceVersion"),
        resource_version_match=request.query_value("resourceVersionMatch"),
        limit=_integer(request, "limit"),
        continue_token=request.query_value("continue"),
        send_initial_events=_initial_events(request),
    )


def watch_options(request: Request, name: str) -> WatchOptions:
    """Return the options of a watch, of one object where `name` is set. Raises: StatusError 400, 422."""
    selector = request.query_value("fieldSelector")
    if name:
        selector = ",".join(filter(None, (f"metadata.name={name}", selector)))
    parse_selectors(request.query_value("labelSelector"), selector)
    timeout_seconds = _integer(request, "timeoutSeconds")
    initial = _initial_events(request)
    match, version = request.query_value("resourceVersionMatch"), request.query_value("resourceVersion")
    # Upstream reads `continue` only when the watch begins with the current state.
    token = request.query_value("continue") if match or version in ("", "0") else ""
    request_options.check_initial_events(initial, match, token)
    return WatchOptions(
        label_selector=request.query_value("labelSelector"),
        field_selector=selector,
        resource_version=version,
        allow_bookmarks=request.flag("allowWatchBookmarks"),
        timeout_seconds=max(timeout_seconds, 0),
        send_initial_events=initial,
    )


def write_options(request: Request, kind: str, origin: Origin) -> WriteOptions:
    """Return the options of a write; `kind` is CreateOptions or the like. Raises: StatusError 422."""
    dry_run = request.query.get("dryRun", [])
    request_options.check_dry_run(dry_run, kind)
    validation = request.query_value("fieldValidation")
    request_options.check_field_validation(validation, kind)
    return WriteOptions(
        dry_run=bool(dry_run),
        field_manager=request.query_value("fieldManager"),
        force=request.flag("force") if "force" in request.query else None,
        field_validation=validation,
        warn=True,
        tracked=True,
        user_agent=request.header("user-agent"),
        origin=origin,
    )


def _integer(request: Request, name: str) -> int:
    if name not in request.query:
        return 0
    return parse_int64(request.query_value(name))


def _initial_events(request: Request) -> bool | None:
    return request.flag("sendInitialEvents") if "sendInitialEvents" in request.query else None
