"""The SubjectAccessReview as the body of a request."""

from __future__ import annotations

from typing import Final

from nominee.machinery.api.kinds import Kind
from nominee.pb.k8s.io.api.authorization.v1 import generated_pb2 as authorization

SubjectAccessReview = authorization.SubjectAccessReview
KIND: Final = Kind(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews",
    SubjectAccessReview, SubjectAccessReview, namespaced=False,
)  # fmt: skip
