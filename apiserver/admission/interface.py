"""What an admission plugin gets and may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from apiserver.objects.cached_object import CachedObject
from machinery.api import errors
from machinery.api.errors import Cause, StatusError
from machinery.api.kinds import Kind

Operation = Literal["CREATE", "UPDATE", "DELETE"]


@dataclass(slots=True)
class Request:
    """One write. `obj` may be changed by `admit`; `old` is what is stored (None on create), shared."""

    operation: Operation
    kind: Kind[Any]
    namespace: str
    name: str
    subresource: str
    obj: Any
    old: Any = None
    dry_run: bool = False

    def forbidden(self, problem: str, causes: Sequence[Cause] = ()) -> StatusError:
        """403 that names the object; a name that is yet to be generated shows its prefix."""
        name = self.name or (self.obj.metadata.generateName if self.obj is not None else "")
        error = errors.forbidden(self.kind, name, problem)
        if causes:
            return StatusError(error.code, error.reason, error.message, details=error.details, causes=causes)
        return error


class Lookup(Protocol):
    """How plugins read other objects: the cache, and etcd where it has nothing."""

    async def find(self, kind: Kind[Any], namespace: str, name: str) -> CachedObject | None: ...

    async def known(self, kind: Kind[Any]) -> Sequence[CachedObject]:
        """All of a cluster-scoped kind, as the cache has them."""
        ...

    def listed(self, kind: Kind[Any], namespace: str) -> Sequence[CachedObject]:
        """A namespace's objects, as the cache has them; costs next to nothing where there are none."""
        ...

    async def change(
        self, kind: Kind[Any], namespace: str, name: str, mutate: Callable[[Any], Awaitable[Any]]
    ) -> None:
        """A guaranteed update past the rules, of what the server itself keeps.

        `mutate` gets the CachedObject, makes the new message or raises, and may run again. 404, 409.
        """
        ...


class Plugin:
    """A plugin that lets everything pass; `handles` says which (kind, operation) it wants to see."""

    name = ""

    def handles(self, kind: Kind[Any], operation: Operation, subresource: str) -> bool:
        raise NotImplementedError

    async def admit(self, request: Request, lookup: Lookup) -> None:
        """Fill in, or refuse by raising StatusError; before the strategy."""

    async def validate(self, request: Request, lookup: Lookup) -> None:
        """Refuse what the strategy has found valid."""
