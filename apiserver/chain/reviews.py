"""Reviews: requests that are answered and not stored, such as SubjectAccessReviews."""

from __future__ import annotations

from nominee.apiserver.access.access import Access
from nominee.apiserver.chain.request import ApiRequest
from nominee.apiserver.objects.cached_object import never_stored
from nominee.apiserver.objects.requests import WriteResult
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.runtime.clock import Clock, to_time
from nominee.pb.k8s.io.api.authentication.v1 import generated_pb2 as authentication


async def review(request: ApiRequest, kind: AnyKind, access: Access, clock: Clock) -> WriteResult:
    """Answer a review of this kind. Raises: StatusError 400, 406, 413, 415, 422."""
    from nominee.apiserver.access import reviews

    request.prepare()
    body = await request.body(kind)
    answered = reviews.answer(access, body, request.user, request.namespace)
    if isinstance(answered, authentication.SelfSubjectReview):
        answered.metadata.creationTimestamp.CopyFrom(to_time(clock.now()))
    return WriteResult(never_stored(kind, answered), created=True)
