"""The nodes of a user. Pure.

Upstream a kubelet is one node: user system:node:NAME in group system:nodes. Here a kubelet process runs many
nodes, and its credential names them in further groups, `nominee:nodes:PATTERN`: `node-0..9` is node-0 to
node-9, `pool-*` every name with this prefix (the machines of a node group, whose names are not known in
advance).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from nominee.apiserver.objects.user import NODES, User

USER_PREFIX = "system:node:"
GROUP_PREFIX = "nominee:nodes:"
_RANGE = re.compile(r"(?P<prefix>.*?)(?P<first>[0-9]+)\.\.(?P<last>[0-9]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """The node of a credential, and the patterns of the other nodes of its process."""

    name: str
    patterns: tuple[str, ...] = ()

    @property
    def many(self) -> bool:
        return bool(self.patterns)

    def has(self, node: str) -> bool:
        """Report whether a name is one of its nodes; "" never is."""
        if not node:
            return False
        return node == self.name or any(_matches(pattern, node) for pattern in self.patterns)


def identify(user: User) -> NodeIdentity | None:
    """Return the node identity of a user, or None when the user is no node.

    The name is "" when the user name does not contain one.
    """
    if not user.name.startswith(USER_PREFIX) or NODES not in user.groups:
        return None
    return _identity(user)


@lru_cache(maxsize=1024)
def _identity(user: User) -> NodeIdentity:
    patterns = tuple(group[len(GROUP_PREFIX) :] for group in user.groups if group.startswith(GROUP_PREFIX))
    return NodeIdentity(user.name[len(USER_PREFIX) :], patterns)


@lru_cache(maxsize=16_384)
def _matches(pattern: str, node: str) -> bool:
    if pattern.endswith("*"):
        return node.startswith(pattern[:-1])
    found = _RANGE.fullmatch(pattern)
    if found is None:
        return node == pattern
    number = node.removeprefix(found["prefix"])
    if number == node and found["prefix"]:
        return False
    return (
        number.isascii()
        and number.isdecimal()
        and str(int(number)) == number
        and int(found["first"]) <= int(number) <= int(found["last"])
    )
