"""Reviews: who am I, may I; asked and not stored.

Everything is allowed to everybody, as with --authorization-mode=AlwaysAllow; no token is known.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from k8s.io.api.authentication.v1 import generated_pb2 as authentication
from k8s.io.api.authorization.v1 import generated_pb2 as authorization

from apiserver.rest.bodies import Expected
from apiserver.rest.discovery import Virtual

if TYPE_CHECKING:
    from apiserver.access.user import User


@cache
def expected(virtual: Virtual) -> Expected:
    """What such a review's body is."""
    module: Any = authentication if virtual.group == "authentication.k8s.io" else authorization
    return Expected(virtual.api_version, virtual.kind, getattr(module, virtual.kind))


def answer(review: Any, user: User) -> Any:
    """The review with its status."""
    review.ClearField("status")
    status = review.status
    if isinstance(review, authentication.SelfSubjectReview):
        status.userInfo.username, status.userInfo.uid = user.name, user.uid
        status.userInfo.groups.extend(user.groups)
    elif isinstance(review, authentication.TokenReview):
        status.authenticated = False
        status.error = "this server knows no tokens"
    elif isinstance(review, authorization.SelfSubjectRulesReview):
        status.resourceRules.add(verbs=["*"], apiGroups=["*"], resources=["*"])
        status.nonResourceRules.add(verbs=["*"], nonResourceURLs=["*"])
        status.incomplete = False
    else:
        status.allowed = True
    return review
