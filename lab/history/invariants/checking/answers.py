"""An answer of an API server, with the history's revisions between which it was made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from nominee.machinery.api.kinds import AnyKind


class Method(Enum):
    """The methods of the API whose answers are about the newest state."""

    GET = "get"
    LIST = "list"
    CREATE = "create"
    UPDATE = "update"
    PATCH = "patch"
    DELETE = "delete"


class Outcome(Enum):
    """The statement of an answer about its object; other answers say nothing about the stored state."""

    DONE = "done"
    NOT_FOUND = "not found"
    ALREADY_EXISTS = "already exists"
    CHANGED = "changed meanwhile"
    """The resourceVersion that the request was made for is not the newest."""
    REFUSED = "refused"
    """For another reason, which says nothing about the stored object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one request, but not to a dry run.

    `kind` is the stored one. `begin` is etcd's revision when the request was sent, `end` when the answer
    left the server. `resource_version` is that of the object or list in the answer; for CHANGED the one that
    the request was made for; 0 without one. `expected_version` is the one in an update. `uid` is in the
    request, and so are `node`, of a binding, and `generate_name`, of a creation. `client_pid` and
    `begin_time` (seconds since the epoch) are of the request. `was_frozen`: its process had just gone on
    after it had been frozen. `is_forced`: a deletion without any grace period.
    """

    client: str
    method: Method
    outcome: Outcome
    kind: AnyKind
    namespace: str
    name: str
    begin: int
    end: int
    resource_version: int = 0
    expected_version: int = 0
    uid: str = ""
    node: str = ""
    generate_name: str = ""
    client_pid: int = 0
    begin_time: float = 0.0
    was_frozen: bool = False
    is_forced: bool = False

    def spans(self, revision: int) -> bool:
        """Return whether a revision was written between the request and its answer."""
        return self.begin < revision <= self.end
