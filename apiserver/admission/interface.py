"""The interface of admission plugins: the request, access to other objects, and the plugin itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from nominee.apiserver.objects.attributes import SERVER, Origin
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.machinery.api import errors
from nominee.machinery.api.errors import Cause, StatusError
from nominee.machinery.api.kinds import AnyKind

Operation = Literal["CREATE", "UPDATE", "DELETE"]
RequestType = tuple[AnyKind, Operation, str]
"""Kind, operation and subresource ("" for the object itself) of requests."""


@dataclass(slots=True)
class AdmissionRequest:
    """One write. `admit` may change `obj`; `old` is the stored object (None on create), which is shared."""

    operation: Operation
    kind: AnyKind
    namespace: str
    name: str
    subresource: str
    obj: Any
    old: Any = None
    dry_run: bool = False
    origin: Origin = SERVER
    imported: bool = False
    """A new object continues one of another cluster: what it is now, it has been there."""

    def forbidden(self, problem: str, causes: Sequence[Cause] = ()) -> StatusError:
        """Return a 403 that names the object; a name that is not generated yet is shown as its prefix."""
        name = self.name or (self.obj.metadata.generateName if self.obj is not None else "")
        error = errors.forbidden(self.kind, name, problem)
        if causes:
            return StatusError(error.code, error.reason, error.message, details=error.details, causes=causes)
        return error


class Lookup(Protocol):
    """Access of plugins to other objects: from the cache, and from etcd when the cache does not have them."""

    async def find(self, kind: AnyKind, namespace: str, name: str) -> CachedObject | None: ...

    async def known(self, kind: AnyKind) -> Sequence[CachedObject]:
        """Return the cached objects of a cluster-scoped kind."""
        ...

    def listed(self, kind: AnyKind, namespace: str) -> Sequence[CachedObject]:
        """Return the cached objects of a namespace; nearly free when there are no objects."""
        ...

    async def change(
        self, kind: AnyKind, namespace: str, name: str, mutate: Callable[[Any], Awaitable[Any]]
    ) -> None:
        """Update an object that the server itself maintains, without its strategy and admission.

        `mutate` gets the CachedObject and returns the new message or raises; it may run several times.

        Raises: StatusError 404, 409.
        """
        ...


class Plugin:
    """A plugin that admits everything that it handles."""

    name: ClassVar[str] = ""
    requests: ClassVar[tuple[RequestType, ...]] = ()

    def handles(self, kind: AnyKind, operation: Operation, subresource: str) -> bool:
        """Report whether the plugin sees such requests."""
        return (kind, operation, subresource) in self.requests

    async def admit(self, request: AdmissionRequest, lookup: Lookup) -> None:
        """Change the object, or refuse the write; before the strategy.

        Raises: StatusError.
        """

    async def validate(self, request: AdmissionRequest, lookup: Lookup) -> None:
        """Refuse a write that the strategy has found valid.

        Raises: StatusError.
        """
