"""The user of a request.

The chain's impersonation filter sets `CURRENT` in the request's own task; flow control, admission and the
registry ask `current_user()`.
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
    """A user as authorizers see it (apiserver's user.Info); `extra` in order of keys."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


ADMIN = User("kubernetes-admin", (MASTERS, ALL_AUTHENTICATED))
"""Everybody, where the ports are plain and nobody has to say who they are; and the server itself."""
ANONYMOUS = User("system:anonymous", (ALL_UNAUTHENTICATED,))

CURRENT: ContextVar[User] = ContextVar("user", default=ADMIN)


def current_user() -> User:
    """The user of the request that this task serves."""
    return CURRENT.get()
