"""What the fronts (gRPC now, REST later) ask of the registry, and what it answers.

`RegistryAPI` is implemented by `apiserver.registry.Registry`. Bodies come in as messages that the callee may
change, and objects go out as `CachedObject`s, which are both bytes and message. Every method raises
`machinery.api.errors.StatusError`, nothing else. The kind is the one asked for: events.k8s.io's Event is
converted from and to the core Event that is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

from google.protobuf.message import Message

from apiserver.objects.cached_object import CachedObject
from apiserver.objects.watcher import Watcher
from machinery.api.kinds import Kind
from machinery.api.pb import meta


class PatchKind(IntEnum):
    """As in api.proto's PatchRequest.Type."""

    JSON = 1
    MERGE = 2
    STRATEGIC = 3
    APPLY = 4


@dataclass(frozen=True, slots=True)
class ListOptions:
    """What a list may ask for; the texts are as the client sent them, unparsed.

    `send_initial_events` is for watches: where it is given at all, the list is refused.
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
    """What a watch may ask for; `timeout_seconds` 0 is the server's own limit.

    `send_initial_events`: begin with the present state and mark its end with a bookmark (True), or do not
    (False); None is what the resource version says.
    """

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    allow_bookmarks: bool = False
    timeout_seconds: int = 0
    send_initial_events: bool | None = None


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What every write may ask for; `warn` is told what the client should know although it is done.

    `force` is for applies alone; None where the client did not say. `field_manager` is who changes fields;
    where it is "", `agent` tells the client's user agent. `tracked`: a new object's fields are managed from
    the beginning. `made` is called where an apply creates. `track` says otherwise than by its endpoint whose
    the fields are that a change changes: (live, new, now).
    """

    dry_run: bool = False
    field_manager: str = ""
    force: bool | None = None
    field_validation: str = ""
    warn: Callable[[str], None] | None = None
    tracked: bool = False
    agent: Callable[[], str] | None = None
    made: Callable[[], None] | None = None
    track: Callable[[Any, Any, meta.Time], None] | None = None


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of objects in key order; `remaining` is None where it is not known."""

    items: Sequence[CachedObject]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """The object as deleted, or as marked where it stays for its grace period or finalizers."""

    object: CachedObject
    deleted: bool


NO_OPTIONS = WriteOptions()


class RegistryAPI(Protocol):
    """The rules of every kind. Namespace "" is cluster scope, or in list and watch all namespaces."""

    async def get(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        subresource: str = "",
        *,
        resource_version: str = "",
    ) -> CachedObject: ...

    async def list(self, kind: Kind[Any], namespace: str, options: ListOptions) -> ListPage: ...

    async def watch(self, kind: Kind[Any], namespace: str, options: WatchOptions) -> Watcher: ...

    async def create(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        subresource: str,
        body: Message,
        options: WriteOptions = NO_OPTIONS,
    ) -> CachedObject:
        """Create `body`, or act by a subresource of `name` (binding: a core.Binding, eviction: an Eviction).

        A subresource's answer is the object that it acted on.
        """
        ...

    async def update(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        subresource: str,
        body: Message,
        options: WriteOptions = NO_OPTIONS,
    ) -> CachedObject: ...

    async def patch(
        self,
        kind: Kind[Any],
        namespace: str,
        name: str,
        subresource: str,
        patch_kind: PatchKind,
        patch: bytes,
        options: WriteOptions = NO_OPTIONS,
    ) -> CachedObject: ...

    async def delete(
        self, kind: Kind[Any], namespace: str, name: str, options: meta.DeleteOptions
    ) -> DeleteResult: ...
