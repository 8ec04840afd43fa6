"""The user of a request.

The chain's impersonation filter sets `CURRENT` in the request's own task; flow control, admission and the
registry call `current_user()`.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

ALL_AUTHENTICATED = "system:authenticated"
ALL_UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
NODES = "system:nodes"


@dataclass(frozen=True, slots=True)
class User:
    """A user as authorizers see it (user.Info); `extra` is sorted by key."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


ADMIN = User("kubernetes-admin", (MASTERS, ALL_AUTHENTICATED))
"""The user of all requests on plain ports, which need no credentials; and of the server itself."""
ANONYMOUS = User("system:anonymous", (ALL_UNAUTHENTICATED,))

CURRENT: ContextVar[User] = ContextVar("user", default=ADMIN)


def current_user() -> User:
    """Return the user of the request that this task serves."""
    return CURRENT.get()
