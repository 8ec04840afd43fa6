"""The SubjectAccessReview as the body of a request."""

from __future__ import annotations

from typing import Final

from nominee.machinery.api.kinds import Kind
from nominee.machinery.wire import envelope, presence
from nominee.pb.k8s.io.api.authorization.v1 import generated_pb2 as authorization

SubjectAccessReview = authorization.SubjectAccessReview
KIND: Final = Kind(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews",
    SubjectAccessReview, SubjectAccessReview, namespaced=False,
)  # fmt: skip


def encode(review: SubjectAccessReview) -> bytes:
    """Return a body; fills in the fields that are always on the wire."""
    presence.fill(review)
    return envelope.wrap(KIND, review.SerializeToString(deterministic=True))


def decode(body: bytes) -> SubjectAccessReview:
    """Return the review in a body. Raises: EnvelopeError, DecodeError."""
    version, name, raw = envelope.unwrap(body)
    if (version, name) != (KIND.api_version, KIND.kind):
        raise envelope.EnvelopeError(f"expected {KIND.api_version} {KIND.kind}, got {version} {name}")
    return SubjectAccessReview.FromString(raw)
