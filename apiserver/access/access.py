"""A request's way past the door: who is it, as whom does it act, may it do this. Both fronts use it.

user = access.admit(credentials, impersonation headers)      401, 403
... flow control ...
access.authorize(user, attributes)                           403
"""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.access.attributes import Attributes
from apiserver.access.authentication import Authenticator, Credentials
from apiserver.access.authorizer import AlwaysAllow, Authorizer, RulesFor, Union, forbidden
from apiserver.access.impersonation import Headers, impersonated
from apiserver.access.user import ADMIN, User, current_user

EVERYBODY = Union([AlwaysAllow()])


class Access:
    """Without an authenticator everybody is admin: the ports are plain, on loopback."""

    def __init__(
        self, authenticator: Authenticator | None = None, authorizer: Authorizer = EVERYBODY
    ) -> None:
        self.authenticator = authenticator
        self.authorizer = authorizer
        # Nothing is refused to anybody: no need to ask.
        self.open = authorizer is EVERYBODY

    def admit(self, credentials: Credentials, headers: Headers = ()) -> User:
        """Who acts. Raises 401, and 403 where it may not act as whom it wants to."""
        user = self.authenticator.user_of(credentials) if self.authenticator is not None else ADMIN
        return impersonated(user, headers, self.authorizer) if headers else user

    def authorize(self, user: User, attributes: Attributes) -> None:
        """Raises 403."""
        if self.open:
            return
        decision = self.authorizer.decide(user, attributes)
        if not decision.allowed:
            raise forbidden(user, attributes, decision.reason)

    def authorize_current(self, attributes: Attributes) -> None:
        """As `authorize`, for the user of the request that this task serves."""
        self.authorize(current_user(), attributes)

    def rules_for(self, user: User, namespace: str) -> RulesFor:
        return self.authorizer.rules_for(user, namespace)

    def of_token(self, token: str, audiences: Sequence[str] = ()) -> User | None:
        """The user of a token, for reviews."""
        return self.authenticator.of_token(token, audiences) if self.authenticator is not None else None


OPEN = Access()
"""Everybody is admin and may do everything."""


def named(field_selector: str) -> str:
    """The name that a list or watch asks for by `metadata.name=NAME`, "" where it asks for others too."""
    for term in field_selector.split(","):
        key, equals, value = term.partition("=")
        if key == "metadata.name" and equals:
            return value.removeprefix("=")
    return ""


__all__ = ["OPEN", "Access", "named"]
