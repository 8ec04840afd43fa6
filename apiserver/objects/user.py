"""The users of requests."""

from __future__ import annotations

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
