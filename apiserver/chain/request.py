"""The request as the chain sees it. Each front has a subclass that decodes it and encodes the response.

The methods stand in the order in which the filters and the handler call them; only the handler, which is
after authorization, reads the body.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, TypeVar

from google.protobuf.message import Message

from nominee.apiserver.chain.metrics import RequestLabels
from nominee.apiserver.objects.attributes import Origin
from nominee.apiserver.objects.user import ADMIN

if TYPE_CHECKING:
    import asyncio

    from nominee.apiserver.access.authentication import Credentials
    from nominee.apiserver.access.impersonation import Headers
    from nominee.apiserver.chain.results import Result
    from nominee.apiserver.flow_control.controller import FlowControl, Ticket
    from nominee.apiserver.objects.attributes import Attributes
    from nominee.apiserver.objects.requests import (
        ListOptions,
        PatchKind,
        RegistryAPI,
        WatchOptions,
        WriteOptions,
    )
    from nominee.apiserver.objects.user import User
    from nominee.apiserver.objects.watcher import Watcher
    from nominee.machinery.api.errors import StatusError
    from nominee.machinery.api.kinds import Kind
    from nominee.machinery.api.pb import meta

Verb = Literal["", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
"""A verb of RBAC; "" for a request without one."""
M = TypeVar("M", bound=Message)
WRITES: frozenset[str] = frozenset({"create", "update", "patch", "delete", "deletecollection"})
METRICS_VERBS = {
    "": "GET",
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
}
"""The verbs as upstream's metrics have them."""


OwnHandler = Callable[["RegistryAPI"], Awaitable["Result"]]
"""Does what a request asks for that only one front serves."""


class ClientGone(Exception):
    """The client left before its request was read: there is no one to respond to."""


class ApiRequest(ABC):
    """A request. `kind` is None when no kind is served under the resource's name.

    `namespace` "" is cluster scope or all namespaces; `code` is the response's HTTP status, set when it is
    sent. `handler` is set for a request that only this front serves, or that is about no object.
    """

    attributes: Attributes
    kind: Kind[Message] | None = None
    namespace = ""
    name = ""
    subresource = ""
    user: User = ADMIN
    ticket: Ticket | None = None
    deadline: asyncio.Timeout | None = None
    handler: OwnHandler | None = None
    code = 0

    def __init__(self, verb: Verb) -> None:
        self.verb: Verb = verb

    # What the filters ask for.

    @abstractmethod
    def seconds_max(self) -> float | None:
        """Return the time to the beginning of the response; None for no limit. Raises: StatusError 400."""

    @abstractmethod
    def credentials(self) -> Credentials:
        """Return the client's credentials. Raises: StatusError 400."""

    @abstractmethod
    def impersonation(self) -> Headers:
        """Return the Impersonate-* headers, with names in lower case."""

    @abstractmethod
    def user_agent(self) -> str:
        """Return the client's user agent; "" without one."""

    @abstractmethod
    def resolve(self) -> Attributes:
        """Set the target of the request, and return its attributes. Raises: StatusError 400, 413."""

    @abstractmethod
    def width(self, control: FlowControl) -> Callable[[int], int] | None:
        """Return the function from a level's largest width to the request's seats; None for one seat."""

    @abstractmethod
    def queue_seconds_max(self) -> float:
        """Return the longest time that the request may wait for its seat."""

    @abstractmethod
    def prepare(self) -> None:
        """Check that the response can be encoded as the client wants. Raises: StatusError 406."""

    # What the handlers ask for.

    @abstractmethod
    def resource_version(self) -> str:
        """Return the resourceVersion of a get."""

    @abstractmethod
    def list_options(self) -> ListOptions:
        """Return the options of a list. Raises: StatusError 400."""

    @abstractmethod
    def watch_options(self) -> WatchOptions:
        """Return the options of a watch. Raises: StatusError 400, 422."""

    def origin(self) -> Origin:
        """Return who asks, for the registry."""
        return Origin(self.user, self.attributes)

    @abstractmethod
    def write_options(self, kind: str) -> WriteOptions:
        """Return the options of a write; `kind` is CreateOptions or the like. Raises: StatusError 422."""

    @abstractmethod
    async def delete_options(self) -> meta.DeleteOptions:
        """Return the options of a delete. Raises: StatusError 400, 413, 415."""

    @abstractmethod
    async def body(self, expected: Kind[M]) -> M:
        """Return the body, which must be of this kind. Raises: StatusError 400, 413, 415."""

    @abstractmethod
    def patch_kind(self) -> PatchKind:
        """Return the kind of a patch. Raises: StatusError 400, 415."""

    @abstractmethod
    async def patch(self) -> bytes:
        """Return the text of a patch. Raises: StatusError 413."""

    # The response. Each sets `code`.

    @abstractmethod
    async def respond(self, result: Result) -> None:
        """Send the result of a handler."""

    @abstractmethod
    async def stream(self, watcher: Watcher) -> None:
        """Send the events of a watch until it ends, or the client leaves."""

    @abstractmethod
    async def fail(self, error: StatusError) -> None:
        """Send a Status."""

    def labels(self) -> RequestLabels:
        """Return the request's labels in metrics. Names that a client made up are counted as one."""
        kind, verb = self.kind, METRICS_VERBS[self.verb]
        if kind is None:
            return RequestLabels(verb, "", "", "", "")
        subresource = self.subresource if self.subresource in kind.subresources else ""
        return RequestLabels(verb, kind.group, kind.version, kind.plural, subresource)
