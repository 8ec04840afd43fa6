"""The options and results of requests, and the registry's interface (`RegistryAPI`).

The request chain calls it, and so do the parts of the server that write objects themselves. A body is a
message that the registry may change; a result is a `CachedObject`, which is bytes and message. Every method
raises `nominee.machinery.api.errors.StatusError` and nothing else. The kind is the one of the request:
events.k8s.io's Event is converted from and to the stored core Event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from google.protobuf.message import Message

from nominee.apiserver.objects.cached_object import CachedObject
from nominee.apiserver.objects.watcher import Watcher
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.api.pb import core, meta, policy
from nominee.pb.k8s.io.api.authentication.v1 import generated_pb2 as authentication
from nominee.pb.k8s.io.api.autoscaling.v1 import generated_pb2 as autoscaling


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
    """

    dry_run: bool = False
    field_manager: str = ""
    force: bool | None = None
    field_validation: str = ""
    warn: bool = False
    tracked: bool = False
    user_agent: str = ""


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


class RegistryAPI(Protocol):
    """The registry of all kinds. Namespace "" is cluster scope, or in list and watch all namespaces."""

    async def get(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        subresource: str = "",
        *,
        resource_version: str = "",
    ) -> CachedObject: ...

    async def list(self, kind: AnyKind, namespace: str, options: ListOptions) -> ListPage: ...

    async def watch(self, kind: AnyKind, namespace: str, options: WatchOptions) -> Watcher: ...

    async def create(
        self, kind: AnyKind, namespace: str, body: Message, options: WriteOptions = NO_OPTIONS
    ) -> WriteResult: ...

    async def update(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        subresource: str,
        body: Message,
        options: WriteOptions = NO_OPTIONS,
    ) -> WriteResult: ...

    async def patch(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        subresource: str,
        patch_kind: PatchKind,
        data: bytes,
        options: WriteOptions = NO_OPTIONS,
    ) -> WriteResult: ...

    async def delete(
        self, kind: AnyKind, namespace: str, name: str, options: meta.DeleteOptions
    ) -> DeleteResult: ...

    async def get_scale(self, kind: AnyKind, namespace: str, name: str) -> CachedObject: ...

    async def update_scale(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        body: autoscaling.Scale,
        options: WriteOptions = NO_OPTIONS,
    ) -> WriteResult: ...

    async def patch_scale(
        self,
        kind: AnyKind,
        namespace: str,
        name: str,
        patch_kind: PatchKind,
        data: bytes,
        options: WriteOptions = NO_OPTIONS,
    ) -> WriteResult: ...

    async def bind(
        self, namespace: str, name: str, body: core.Binding, options: WriteOptions = NO_OPTIONS
    ) -> WriteResult: ...

    async def evict(
        self, namespace: str, name: str, body: policy.Eviction, options: WriteOptions = NO_OPTIONS
    ) -> WriteResult: ...

    async def issue_token(
        self, namespace: str, name: str, body: authentication.TokenRequest
    ) -> WriteResult: ...
