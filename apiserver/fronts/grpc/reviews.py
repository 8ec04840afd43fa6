"""SubjectAccessReviews over gRPC: created as any object is, answered and not stored.

Controllers ask whether another user may do something; the other reviews are for clients of the REST front.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError
from nominee_api.v1 import api_pb2 as api

from apiserver.access.access import Access
from apiserver.access.user import User
from machinery.api import errors
from machinery.wire import access_review, envelope


def is_access_review(target: api.Target) -> bool:
    """Report whether a request is about SubjectAccessReviews."""
    kind = access_review.KIND
    return (target.group, target.version, target.resource) == (kind.group, kind.version, kind.plural)


def answer(request: api.CreateRequest, access: Access, user: User) -> bytes:
    """Return the answer to a review, whose sender `user` may create reviews. Raises: StatusError 400, 422."""
    from apiserver.access import reviews

    try:
        review = access_review.decode(request.body)
    except (envelope.EnvelopeError, DecodeError) as error:
        raise errors.bad_request(f"the body cannot be understood: {error}") from None
    answered = reviews.answer(access, review, user, "")
    return api.Object(body=access_review.encode(answered)).SerializeToString()
