"""Requests about objects: from method and target to the registry's methods, and its results to answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from apiserver.access.access import OPEN, Access
from apiserver.chain import request_options
from apiserver.fronts.rest import answers, bodies, discovery, node_proxy, problems, tables
from apiserver.fronts.rest.http import Answer, Request, parse_int64
from apiserver.fronts.rest.kubelets import UsageSource
from apiserver.fronts.rest.media import (
    JSON,
    OBJECTS,
    PARTIAL,
    PARTIAL_LIST,
    STREAMS,
    TABLE,
    YAML,
    Media,
    content_type,
    negotiate,
)
from apiserver.fronts.rest.node_proxy import NodeSource
from apiserver.fronts.rest.target import Target
from apiserver.kinds.rules import DeleteResponse
from apiserver.kinds.strategy import read_only
from apiserver.kinds.table import rules_of
from apiserver.objects.cached_object import CachedObject
from apiserver.objects.list_options import parse_selectors
from apiserver.objects.requests import (
    ListOptions,
    ListPage,
    PatchKind,
    RegistryAPI,
    WatchOptions,
    WriteOptions,
    WriteResult,
)
from apiserver.objects.watcher import Watcher
from apiserver.registry.collection import delete_collection, is_deletable
from apiserver.schema import large_bodies, version_fields
from machinery.api import kinds
from machinery.api.errors import StatusError
from machinery.api.kinds import Kind
from machinery.api.pb import meta
from machinery.features.gates import Version
from machinery.runtime import failpoints
from machinery.runtime.clock import Clock, to_time

if TYPE_CHECKING:
    from apiserver.access.user import User

_SHOWN_OBJECT = frozenset({TABLE, PARTIAL})
_SHOWN_LIST = frozenset({TABLE, PARTIAL_LIST})
_SHOWN_WATCH = frozenset({TABLE, PARTIAL, PARTIAL_LIST})
_ONLY_SELF: frozenset[str] = frozenset()
_NOT_EMULATED = frozenset({"log", "exec", "attach", "portforward", "proxy"})
_PATCHES = {
    "application/json-patch+json": PatchKind.JSON,
    "application/merge-patch+json": PatchKind.MERGE,
    "application/strategic-merge-patch+json": PatchKind.STRATEGIC,
    "application/apply-patch+yaml": PatchKind.APPLY,
}
_BEFORE_WRITE = failpoints.declare("apiserver.rest.write.before")
_AFTER_WRITE = failpoints.declare("apiserver.rest.write.after")


@dataclass(frozen=True, slots=True)
class Watch:
    """A watch that stands, or the status that a client finds in its first event."""

    watcher: Watcher | StatusError
    media: Media


def is_watch(request: Request, target: Target) -> bool:
    """Whether this is a stream."""
    return (
        request.method == "GET"
        and target.kind is not None
        and not target.subresource
        and (target.watch or (target.collection and request.flag("watch")))
    )


class Resources:
    """Answers everything that is no watch; raises StatusError."""

    def __init__(
        self,
        registry: RegistryAPI,
        clock: Clock,
        access: Access = OPEN,
        usage: UsageSource | None = None,
        version: Version = version_fields.TABLE_VERSION,
        nodes: NodeSource | None = None,
    ) -> None:
        self._nodes = nodes
        self._version = version
        self._registry = registry
        self._usage = usage
        self._access = access
        self._clock = clock

    async def answer(self, request: Request, target: Target, user: User) -> Answer:
        kind = target.kind
        if kind is None:
            return await self._virtual(request, target, user)
        if kind.read_only and request.method != "GET":
            # Before the body is looked at: its schema is not known.
            raise read_only(kind)
        if target.collection:
            return await self._collection(request, target, kind)
        if kind is kinds.NODE and target.subresource == "proxy" and self._nodes is not None:
            return await node_proxy.answer(request, target, self._registry, self._nodes)
        if target.subresource:
            _check_subresource(target, kind)
        if target.rest:
            raise problems.not_served()
        writes = request.method != "GET"
        named = f"{target.namespace}/{target.name}"
        if writes:
            await _BEFORE_WRITE.hit(verb=request.method, resource=kind.plural, object=named)
        if request.method == "GET":
            return await self._get(request, target, kind)
        if request.method == "PUT":
            answer = await self._update(request, target, kind)
        elif request.method == "PATCH":
            answer = await self._patch(request, target, kind)
        elif request.method == "DELETE" and not target.subresource:
            answer = await self._delete(request, target, kind)
        elif request.method == "POST" and target.subresource == "token":
            answer = await self._token(request, target, kind)
        elif request.method == "POST" and target.subresource in ("binding", "eviction"):
            answer = await self._act(request, target, kind)
        else:
            raise problems.method_not_allowed()
        await _AFTER_WRITE.hit(verb=request.method, resource=kind.plural, object=named)
        return answer

    # Reading.

    async def _get(self, request: Request, target: Target, kind: Kind[Any]) -> Answer:
        if target.subresource in ("binding", "eviction", "finalize", "token"):
            raise problems.method_not_allowed()
        media = _negotiated(request, _SHOWN_OBJECT)
        if target.subresource == "scale":
            return self._object(
                request, media, await self._registry.get_scale(kind, target.namespace, target.name)
            )
        found = await self._registry.get(
            kind,
            target.namespace,
            target.name,
            target.subresource,
            resource_version=request.asked("resourceVersion"),
        )
        return self._object(request, media, found)

    async def _list(self, request: Request, target: Target, kind: Kind[Any]) -> Answer:
        media = _negotiated(request, _SHOWN_LIST, STREAMS)
        page = await self._registry.list(kind, target.namespace, _list_options(request))
        return self._page(request, media, kind, page)

    async def watch(self, request: Request, target: Target) -> Watch:
        """A watch; raises StatusError where there cannot be one."""
        kind = target.kind
        assert kind is not None
        media = _negotiated(request, _SHOWN_WATCH, STREAMS)
        selector = request.asked("fieldSelector")
        if target.name:
            selector = ",".join(filter(None, (f"metadata.name={target.name}", selector)))
        parse_selectors(request.asked("labelSelector"), selector)
        timeout_seconds = _integer(request, "timeoutSeconds")
        initial = _initial_events(request)
        match, version = request.asked("resourceVersionMatch"), request.asked("resourceVersion")
        # Only a watch from the beginning has something to continue, upstream thinks.
        token = request.asked("continue") if match or version in ("", "0") else ""
        request_options.check_initial_events(initial, match, token)
        options = WatchOptions(
            label_selector=request.asked("labelSelector"),
            field_selector=selector,
            resource_version=version,
            allow_bookmarks=request.flag("allowWatchBookmarks"),
            timeout_seconds=max(timeout_seconds, 0),
            send_initial_events=initial,
        )
        try:
            return Watch(await self._registry.watch(kind, target.namespace, options), media)
        except StatusError as error:
            # What is wrong with the revision is told in the stream.
            if error.code in (410, 504):
                return Watch(error, media)
            raise

    # Writing.

    async def _collection(self, request: Request, target: Target, kind: Kind[Any]) -> Answer:
        if request.method == "GET":
            return await self._list(request, target, kind)
        if request.method == "DELETE" and is_deletable(kind, target.namespace):
            return await self._delete_collection(request, target, kind)
        if request.method != "POST" or (kind.namespaced and not target.namespace):
            raise problems.method_not_allowed()
        await _BEFORE_WRITE.hit(verb="POST", resource=kind.plural, object=f"{target.namespace}/")
        media = _negotiated(request, _SHOWN_OBJECT)
        options = _write_options(request, "CreateOptions")
        body = await self._decoded(request, bodies.of_kind(kind))
        made = await self._registry.create(kind, target.namespace, body.message, options)
        named = f"{target.namespace}/{made.object.name}"
        await _AFTER_WRITE.hit(verb="POST", resource=kind.plural, object=named)
        return self._written(request, media, made)

    async def _act(self, request: Request, target: Target, kind: Kind[Any]) -> Answer:
        """Binding and eviction; the answer says only that it is done."""
        media = _negotiated(request, _ONLY_SELF)
        options = _write_options(request, "CreateOptions")
        body = await self._decoded(request, bodies.expected(kind, target.subresource))
        if target.subresource == "eviction":
            await self._registry.evict(target.namespace, target.name, body.message, options)
        else:
            await self._registry.bind(target.namespace, target.name, body.message, options)
        done = meta.Status(status="Success", code=201)
        return _message(request, media, _STATUS, done, code=201)

    async def _token(self, request: Request, target: Target, kind: Kind[Any]) -> Answer:
        """A token for a service account."""
        media = _negotiated(request, _ONLY_SELF)
        _write_options(request, "CreateOptions")
        wanted = bodies.expected(kind, target.subresource)
        body = await self._decoded(request, wanted)
        made = await self._registry.issue_token(target.namespace, target.name, body.message)
        return _message(request, media, wanted, made.object.message, code=201)

    async def _update(self, request: Request, target: Target, kind: Kind[Any]) -> Answer:
        if target.subresource in ("binding", "eviction", "token"):
            raise problems.method_not_allowed()
        options = _write_options(request, "UpdateOptions")
        media = _negotiated(request, _SHOWN_OBJECT)
        where = kind, target.namespace, target.name
        if target.subresource == "scale":
            body = await self._decoded(request, bodies.scale())
            changed = await self._registry.update_scale(*where, body.message, options)
        else:
            body = await self._decoded(request, bodies.of_kind(kind))
            changed = await self._registry.update(*where, target.subresource, body.message, options)
        return self._written(request, media, changed)

    async def _patch(self, request: Request, target: Target, kind: Kind[Any]) -> Answer:
        if target.subresource in ("binding", "eviction", "finalize", "token"):
            raise problems.method_not_allowed()
        sent = request.header("content-type").partition(";")[0].strip().lower()
        patch_kind = _PATCHES.get(sent)
        if patch_kind is None:
            raise problems.unsupported_patch_type()
        options = _write_options(request, "PatchOptions")
        patch = await request.body()
        media = _negotiated(request, _SHOWN_OBJECT)
        where = kind, target.namespace, target.name
        if target.subresource == "scale":
            changed = await self._registry.patch_scale(*where, patch_kind, patch, options)
        else:
            changed = await self._registry.patch(*where, target.subresource, patch_kind, patch, options)
        return self._written(request, media, changed)

    async def _delete(self, request: Request, target: Target, kind: Kind[Any]) -> Answer:
        media = _negotiated(request, _ONLY_SELF)
        options = bodies.delete_options(await request.body(), request.header("content-type"), request.asked)
        request_options.check_dry_run(options.dryRun, "DeleteOptions")
        result = await self._registry.delete(kind, target.namespace, target.name, options)
        request.warnings.extend(result.warnings)
        if result.deleted and rules_of(kind).delete_response is DeleteResponse.STATUS:
            done = meta.Status(status="Success")
            uid = result.object.message.metadata.uid
            done.details.CopyFrom(
                meta.StatusDetails(name=target.name, group=kind.group, kind=kind.plural, uid=uid)
            )
            return _message(request, media, _STATUS, done)
        answer = self._object(request, media, result.object)
        if not result.deleted and options.HasField("orphanDependents") and not options.orphanDependents:
            answer.code = 202
        return answer

    async def _delete_collection(self, request: Request, target: Target, kind: Kind[Any]) -> Answer:
        """Each selected object by itself; those that are gone meanwhile do not matter."""
        media = _negotiated(request, _SHOWN_LIST)
        data = await request.body()
        options = bodies.delete_options(data, request.header("content-type"), request.asked)
        request_options.check_dry_run(options.dryRun, "DeleteOptions")
        listing = _list_options(request)
        deleted = await delete_collection(self._registry, kind, target.namespace, listing, options)
        request.warnings.extend(deleted.warnings)
        return self._page(request, media, kind, deleted)

    async def _decoded(self, request: Request, wanted: bodies.Expected) -> bodies.Body:
        data = await request.body()
        validation = request.asked("fieldValidation")
        content = request.header("content-type")
        decode = partial(bodies.decode, data, content, wanted, validation, self._version)
        body = await large_bodies.decoded(len(data), decode, yaml=content_type(content) == YAML)
        request.warnings.extend(body.warnings)
        return body

    # Answers.

    def _object(self, request: Request, media: Media, found: CachedObject, *, code: int = 200) -> Answer:
        if media.shown_as == TABLE:
            page = ListPage([found], found.message.metadata.resourceVersion)
            made = tables.of_page(page, media, request.asked("includeObject"), self._clock.now())
            return Answer(answers.encode(media, made, pretty=request.pretty), code, media.form)
        body = answers.of_object(media, found, pretty=request.pretty)
        return Answer(body, code, media.form)

    def _written(self, request: Request, media: Media, result: WriteResult) -> Answer:
        request.warnings.extend(result.warnings)
        return self._object(request, media, result.object, code=201 if result.created else 200)

    def _page(self, request: Request, media: Media, kind: Kind[Any], page: ListPage) -> Answer:
        include, now = request.asked("includeObject"), self._clock.now()
        if media.shown_as == TABLE and (request.pretty or media.form != JSON):
            made = tables.of_page(page, media, include, now, kind=kind)
            return Answer(answers.encode(media, made, pretty=request.pretty), 200, media.form)
        pieces: AsyncIterator[bytes]
        if media.shown_as == TABLE:
            pieces = tables.in_pieces(page, media, include, now, kind)
            return Answer(content_type=media.form, pieces=pieces)
        pieces = answers.of_list(media, kind, page, pretty=request.pretty)
        return Answer(content_type=media.form, pieces=pieces)

    # What is asked and not stored.

    async def _virtual(self, request: Request, target: Target, user: User) -> Answer:
        found = discovery.virtual(target.group, target.version, target.resource)
        if found is not None and found.group == "metrics.k8s.io" and self._usage is not None:
            from apiserver.fronts.rest.resource_metrics import ResourceMetrics

            return await ResourceMetrics(self._registry, self._usage).answer(request, target)
        if found is None or target.name or (found.namespaced != bool(target.namespace)):
            raise problems.not_served()
        if request.method != "POST":
            raise problems.method_not_allowed()
        if found.kind == "Binding":
            return await self._bind(request, target)
        from apiserver.access.reviews import answer
        from apiserver.fronts.rest import reviews

        media = _negotiated(request, _ONLY_SELF)
        body = await self._decoded(request, reviews.expected(found))
        review = answer(self._access, body.message, user, target.namespace)
        if found.kind == "SelfSubjectReview":
            review.metadata.creationTimestamp.CopyFrom(to_time(self._clock.now()))
        return _message(request, media, reviews.expected(found), review, code=201)

    async def _bind(self, request: Request, target: Target) -> Answer:
        """POST of a Binding to /bindings: its own name is the pod's."""
        media = _negotiated(request, _ONLY_SELF)
        options = _write_options(request, "CreateOptions")
        body = await self._decoded(request, bodies.BINDING)
        name = body.message.metadata.name
        await self._registry.bind(target.namespace, name, body.message, options)
        done = meta.Status(status="Success", code=201)
        return _message(request, media, _STATUS, done, code=201)


_STATUS = bodies.Expected("v1", "Status", meta.Status)


def _check_subresource(target: Target, kind: Kind[Any]) -> None:
    if target.subresource in kind.subresources:
        return
    if target.subresource in _NOT_EMULATED and kind in (kinds.POD, kinds.NODE):
        raise problems.not_emulated(f"{kind.plural}/{target.subresource}")
    raise problems.not_served()


def _negotiated(request: Request, shown: frozenset[str], available: str = OBJECTS) -> Media:
    media = negotiate(request.header("accept"), shown=shown)
    if media is None:
        raise problems.not_acceptable(available)
    if media.shown_as == TABLE:
        tables.check(request.asked("includeObject"))
    return media


def _message(
    request: Request, media: Media, wanted: bodies.Expected, message: Any, *, code: int = 200
) -> Answer:
    body = answers.of_message(media, wanted.api_version, wanted.kind, message, pretty=request.pretty)
    return Answer(body, code, media.form)


# Options.


def _integer(request: Request, name: str) -> int:
    if name not in request.query:
        return 0
    return parse_int64(request.asked(name))


def _initial_events(request: Request) -> bool | None:
    return request.flag("sendInitialEvents") if "sendInitialEvents" in request.query else None


def _list_options(request: Request) -> ListOptions:
    _integer(request, "timeoutSeconds")
    return ListOptions(
        label_selector=request.asked("labelSelector"),
        field_selector=request.asked("fieldSelector"),
        resource_version=request.asked("resourceVersion"),
        resource_version_match=request.asked("resourceVersionMatch"),
        limit=_integer(request, "limit"),
        continue_token=request.asked("continue"),
        send_initial_events=_initial_events(request),
    )


def _write_options(request: Request, kind: str) -> WriteOptions:
    dry_run = request.query.get("dryRun", [])
    request_options.check_dry_run(dry_run, kind)
    validation = request.asked("fieldValidation")
    request_options.check_field_validation(validation, kind)
    return WriteOptions(
        dry_run=bool(dry_run),
        field_manager=request.asked("fieldManager"),
        force=request.flag("force") if "force" in request.query else None,
        field_validation=validation,
        warn=True,
        tracked=True,
        user_agent=request.header("user-agent"),
    )


__all__ = ["Resources", "Watch", "is_watch"]
