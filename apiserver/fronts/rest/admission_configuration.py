"""Admission webhooks and policies: empty lists, and a clear refusal of requests that create one.

Nominee calls no webhook and evaluates no policy, so no object of these kinds is stored.
"""

from __future__ import annotations

from typing import Final

from nominee.apiserver.chain import problems
from nominee.apiserver.fronts.rest.answers import documents as answers
from nominee.apiserver.fronts.rest.discovery.groups import Virtual
from nominee.apiserver.fronts.rest.http.media import OBJECTS, PROTOBUF, negotiate
from nominee.apiserver.fronts.rest.http.messages import Answer, Request
from nominee.apiserver.fronts.rest.http.target import Target
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import GroupResource, StatusError
from nominee.machinery.api.pb import meta

GROUP: Final = kinds.ADMISSION_REGISTRATION


def answer(request: Request, found: Virtual, target: Target) -> Answer:
    """Return the empty list.

    Raises: StatusError 404 for an object, 405 for a write or a watch, 406.
    """
    resource = GroupResource(found.group, found.plural)
    if target.subresource:
        raise problems.not_served()
    if request.method != "GET":
        problem = f"{resource.group_resource} cannot be written: {kinds.NO_ADMISSION_REGISTRATION}"
        raise StatusError(405, "MethodNotAllowed", problem)
    if request.flag("watch") or target.watch:
        raise problems.method_not_allowed()
    if target.name:
        raise errors.not_found(resource, target.name)
    media = negotiate(request.header("accept"))
    if media is None:
        raise problems.not_acceptable(OBJECTS)
    kind = f"{found.kind}List"
    if media.form == PROTOBUF:
        # An empty list of any kind has this form.
        empty = meta.PartialObjectMetadataList()
        return Answer(answers.of_message(media, found.api_version, kind, empty), 200, media.form)
    document = {"kind": kind, "apiVersion": found.api_version, "metadata": {}, "items": []}
    return Answer(answers.encode(media, document, pretty=request.pretty), 200, media.form)
