"""Results of handlers as answers: objects, pages and Statuses in the form that was negotiated."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from nominee.apiserver.chain.results import Result
from nominee.apiserver.fronts.rest.answers import documents as answers
from nominee.apiserver.fronts.rest.answers import tables
from nominee.apiserver.fronts.rest.http.media import JSON, TABLE, Media
from nominee.apiserver.fronts.rest.http.messages import Answer, Request
from nominee.apiserver.kinds.rules import DeleteResponse
from nominee.apiserver.kinds.table import rules_of
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.requests import DeleteResult, ListPage, WriteResult
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import meta


@dataclass(frozen=True, slots=True)
class Encoder:
    """Encodes results of one request; `now` in seconds since the epoch."""

    request: Request
    media: Media
    now: float

    def encode(self, result: Result, kind: AnyKind | None, *, foreground: bool = False) -> Answer:
        """Return the answer for a result; `foreground` of a delete whose dependents are deleted first."""
        if isinstance(result, WriteResult):
            return self.object(result.object, code=201 if result.created else 200)
        if isinstance(result, CachedObject):
            return self.object(result)
        if kind is not None and isinstance(result, ListPage):
            return self.page(kind, result)
        if kind is not None and isinstance(result, DeleteResult):
            return self._deleted(kind, result, foreground=foreground)
        raise TypeError(f"{type(result).__name__} has no REST form")

    def object(self, found: CachedObject, *, code: int = 200) -> Answer:
        """Return the answer with one object."""
        media, pretty = self.media, self.request.pretty
        if media.shown_as == TABLE:
            page = ListPage([found], found.message.metadata.resourceVersion)
            made = tables.of_page(page, media, self.request.query_value("includeObject"), self.now)
            return Answer(answers.encode(media, made, pretty=pretty), code, media.form)
        return Answer(answers.of_object(media, found, pretty=pretty), code, media.form)

    def page(self, kind: AnyKind, page: ListPage) -> Answer:
        """Return the answer with a list, sent in pieces where its form allows that."""
        media, pretty = self.media, self.request.pretty
        include = self.request.query_value("includeObject")
        if media.shown_as == TABLE and (pretty or media.form != JSON):
            made = tables.of_page(page, media, include, self.now, kind=kind)
            return Answer(answers.encode(media, made, pretty=pretty), 200, media.form)
        pieces: AsyncIterator[bytes]
        if media.shown_as == TABLE:
            pieces = tables.in_pieces(page, media, include, self.now, kind)
        else:
            pieces = answers.of_list(media, kind, page, pretty=pretty)
        return Answer(content_type=media.form, pieces=pieces)

    def success(self, code: int, details: meta.StatusDetails | None = None) -> Answer:
        """Return the answer with a Status that the request is done."""
        done = meta.Status(status="Success", code=code if details is None else None)
        if details is not None:
            done.details.CopyFrom(details)
        body = answers.of_message(self.media, "v1", "Status", done, pretty=self.request.pretty)
        return Answer(body, code, self.media.form)

    def _deleted(self, kind: AnyKind, result: DeleteResult, *, foreground: bool) -> Answer:
        """Return the answer of a delete: the object, or a Status where the kind's rules say so."""
        found = result.object
        if result.deleted and rules_of(kind).delete_response is DeleteResponse.STATUS:
            uid = found.message.metadata.uid
            details = meta.StatusDetails(name=found.name, group=kind.group, kind=kind.plural, uid=uid)
            return self.success(200, details)
        return self.object(found, code=202 if foreground and not result.deleted else 200)
