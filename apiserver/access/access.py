"""Authentication, impersonation and authorization, as the request chain's filters use them.

user = access.authenticate(credentials)        StatusError 400, 401
user = access.impersonate(user, headers)       400, 403
... priority and fairness ...
access.authorize(user, attributes)             403
"""

from __future__ import annotations

from collections.abc import Sequence

from nominee.apiserver.access.authentication import Authenticator, Credentials
from nominee.apiserver.access.authorizer import AlwaysAllow, Authorizer, Union, forbidden
from nominee.apiserver.access.impersonation import Headers, impersonate
from nominee.apiserver.objects.attributes import Attributes
from nominee.apiserver.objects.user import ADMIN, User

ALLOW_ALL = Union([AlwaysAllow()])


class Access:
    """Authentication and authorization of requests. Without an authenticator every client is admin.

    That is for plain ports on loopback.
    """

    def __init__(
        self, authenticator: Authenticator | None = None, authorizer: Authorizer = ALLOW_ALL
    ) -> None:
        self.authenticator = authenticator
        self.authorizer = authorizer
        # Every request is allowed: no need to ask the authorizer.
        self.open = authorizer is ALLOW_ALL

    def authenticate(self, credentials: Credentials) -> User:
        """Return the user whose credentials these are. Raises: StatusError 400, 401."""
        return ADMIN if self.authenticator is None else self.authenticator.user_of(credentials)

    def impersonate(self, user: User, headers: Headers) -> User:
        """Return the user that Impersonate-* headers name, or `user`. Raises: StatusError 400, 403."""
        return impersonate(user, headers, self.authorizer) if headers else user

    def authorize(self, user: User, attributes: Attributes) -> None:
        """Check that the user may do this. Raises: StatusError 403."""
        if self.open:
            return
        decision = self.authorizer.decide(user, attributes)
        if not decision.allowed:
            raise forbidden(user, attributes, decision.reason)

    def of_token(self, token: str, audiences: Sequence[str] = ()) -> User | None:
        """Return the user of a token, for TokenReviews; None for an invalid one."""
        return self.authenticator.of_token(token, audiences) if self.authenticator is not None else None


OPEN = Access()
"""Every client is admin, and every request is allowed."""
