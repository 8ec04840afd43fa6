"""Reviews: requests that are answered and not stored, such as SubjectAccessReviews."""

from __future__ import annotations

from k8s.io.api.authentication.v1 import generated_pb2 as authentication

from apiserver.access.access import Access
from apiserver.chain.request import ApiRequest
from apiserver.objects.cached_object import unstored
from apiserver.objects.requests import WriteResult
from machinery.api.kinds import AnyKind
from machinery.runtime.clock import Clock, to_time


async def review(request: ApiRequest, kind: AnyKind, access: Access, clock: Clock) -> WriteResult:
    """Answer a review of this kind. Raises: StatusError 400, 406, 413, 415, 422."""
    from apiserver.access import reviews

    request.prepare()
    body = await request.body(kind)
    answered = reviews.answer(access, body, request.user, request.namespace)
    if isinstance(answered, authentication.SelfSubjectReview):
        answered.metadata.creationTimestamp.CopyFrom(to_time(clock.now()))
    return WriteResult(unstored(kind, answered), created=True)
