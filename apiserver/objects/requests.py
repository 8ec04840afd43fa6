"""The requests about objects, their options and results, and who performs them (`RegistryAPI`).

The request chain makes them, and so do the parts of the server that write objects themselves. A body is a
message that the registry may change; a result is a `CachedObject`, which is bytes and message. The kind is
the one of the request: events.k8s.io's Event is converted from and to the stored core Event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Generic, Protocol, TypeVar

from google.protobuf.message import Message

from nominee.apiserver.objects.attributes import SERVER, Origin
from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.watcher import Watcher
from nominee.machinery.api import errors, kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import meta

R = TypeVar("R")


class PatchKind(IntEnum):
    """The kinds of patches, as in api.proto's PatchRequest.Type."""

    JSON = 1
    MERGE = 2
    STRATEGIC = 3
    APPLY = 4


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The options of a list, unparsed.

    `send_initial_events` is for watches: a list that has it is refused.
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_token: str = ""
    send_initial_events: bool | None = None


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """The options of a watch, unparsed; `timeout_seconds` 0 is the server's own limit.

    `send_initial_events`: begin with the current state and mark its end with a bookmark (True), or do not
    (False); with None the resourceVersion decides.
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    allow_bookmarks: bool = False
    timeout_seconds: int = 0
    send_initial_events: bool | None = None


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write.

    `force` is for apply only; None where the client did not set it. `field_manager` owns the fields that the
    write sets; where it is "", the manager's name comes from `user_agent`. With `tracked` a new object has
    managedFields from its creation. With `warn` the client gets warnings; without, they are not computed.
    With `imported` a new object keeps what another cluster has set (`registry.writes.imports`).
    """

    dry_run: bool = False
    field_manager: str = ""
    force: bool | None = None
    field_validation: str = ""
    warn: bool = False
    tracked: bool = False
    imported: bool = False
    user_agent: str = ""
    origin: Origin = SERVER


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The object that a write created or changed, and the warnings for the client.

    `object` is the response's: a Scale for the scale subresource, a TokenRequest with its token, the pod for
    a binding or an eviction. A write that fails has its warnings in `StatusError.warnings`.
    """

    object: CachedObject
    created: bool = False
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of objects in key order; `remaining` is None when the number is unknown.

    `warnings` are those of deleting a collection.
    """

    items: Sequence[CachedObject]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """The deleted object, or the object marked for deletion that stays for its grace period or finalizers."""

    object: CachedObject
    deleted: bool
    warnings: Sequence[str] = ()


NO_OPTIONS = WriteOptions()


@dataclass(frozen=True, slots=True)
class ObjectRequest(Generic[R]):
    """A request about objects of a kind, whose result is an R.

    Namespace "" is cluster scope, or in list and watch all namespaces.
    """

    kind: AnyKind
    namespace: str


@dataclass(frozen=True, slots=True)
class Get(ObjectRequest[CachedObject]):
    """Get one object. Raises: StatusError 400, 404."""

    name: str
    subresource: str = ""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class List(ObjectRequest[ListPage]):
    """List a page of objects. Raises: StatusError 400, 404, 410, 422, 503."""

    options: ListOptions


@dataclass(frozen=True, slots=True)
class Watch(ObjectRequest[Watcher]):
    """Begin a watch. Raises: StatusError 400, 404, 410, 503, 504."""

    options: WatchOptions


@dataclass(frozen=True, slots=True)
class Create(ObjectRequest[WriteResult]):
    """Create an object. Raises: StatusError 400, 403, 409, 413, 422."""

    body: Message
    options: WriteOptions = NO_OPTIONS


@dataclass(frozen=True, slots=True)
class Update(ObjectRequest[WriteResult]):
    """Replace an object, or create one of a kind that allows it.

    Raises: StatusError 400, 403, 404, 409, 413, 422.
    """

    name: str
    subresource: str
    body: Message
    options: WriteOptions = NO_OPTIONS


@dataclass(frozen=True, slots=True)
class Patch(ObjectRequest[WriteResult]):
    """Patch the newest version of an object; an apply creates it where it does not exist.

    Raises: StatusError 400, 403, 404, 409, 413, 415, 422.
    """

    name: str
    subresource: str
    patch_kind: PatchKind
    data: bytes
    options: WriteOptions = NO_OPTIONS


@dataclass(frozen=True, slots=True)
class Delete(ObjectRequest[DeleteResult]):
    """Delete an object, at once or gracefully. Raises: StatusError 400, 403, 404, 409, 422."""

    name: str
    options: meta.DeleteOptions
    origin: Origin = SERVER


@dataclass(frozen=True, slots=True)
class DeleteCollection(ObjectRequest[ListPage]):
    """Delete each object that `listing` selects; the result has the deleted objects.

    Raises: as Delete, for the first object that may not be deleted; those before it are deleted.
    """

    listing: ListOptions
    options: meta.DeleteOptions
    origin: Origin = SERVER


@dataclass(frozen=True, slots=True)
class Act(ObjectRequest[WriteResult]):
    """Act on an object by the creation of a subresource: `binding`, `eviction` or `token`.

    The result of a token has the request, the others the pod.

    Raises: StatusError 400, 403, 404, 409, 422, 429, 500.
    """

    name: str
    subresource: str
    body: Message
    options: WriteOptions = NO_OPTIONS


class RegistryAPI(Protocol):
    """The registry of all kinds."""

    async def perform(self, request: ObjectRequest[R]) -> R:
        """Carry out a request. Raises: StatusError, and nothing else."""
        ...


async def get_if_exists(
    registry: RegistryAPI, kind: AnyKind, namespace: str, name: str, *, resource_version: str = ""
) -> Any:
    """Return an object's message; None where there is no such object. Raises: StatusError."""
    with errors.ignoring(errors.is_not_found):
        found = await registry.perform(Get(kind, namespace, name, resource_version=resource_version))
        return found.message
    return None


async def create_if_missing(registry: RegistryAPI, obj: Any) -> None:
    """Create an object unless its name is taken. Raises: StatusError."""
    with errors.ignoring(errors.is_already_exists):
        await registry.perform(Create(kinds.of(obj), obj.metadata.namespace, obj))
