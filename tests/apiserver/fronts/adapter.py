"""Both fronts in the same words: JSON documents in, `Outcome`s out.

A test's words become a `Call`; `over_rest.py` and `over_grpc.py` say it to their front.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

import anyio
import anyio.from_thread

from nominee.machinery.api.kinds import Kind
from tests.support.patience import PATIENCE_SECONDS

Document = dict[str, Any]
Verb = Literal["create", "get", "list", "update", "patch", "delete", "delete_collection", "watch"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """`code` as HTTP has it (any success is 200); `document` is the object, the list, or the Status."""

    code: int
    document: Document = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        return self.document[name]

    @property
    def metadata(self) -> Document:
        return dict(self.document["metadata"])

    @property
    def names(self) -> list[str]:
        """Of a list's items."""
        return [item["metadata"]["name"] for item in self.document["items"]]

    @property
    def causes(self) -> list[tuple[str, str]]:
        """(reason, field) of a Status."""
        listed = self.document.get("details", {}).get("causes", [])
        return [(cause["reason"], cause.get("field", "")) for cause in listed]


@dataclass(frozen=True, slots=True)
class Event:
    type: str
    document: Document


END = Event("END", {})


class Stream(Protocol):
    """An open watch."""

    def next(self) -> Event:
        """The next event, `END` at the end."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request; `body` is bytes where a test says them itself, `form` a patch's."""

    verb: Verb
    kind: Kind[Any]
    namespace: str
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    subresource: str = ""
    body: Any = None
    form: str = ""


class Api(ABC):
    """A front. Options are named as in REST's query: dryRun, fieldValidation, fieldManager, force, limit,
    labelSelector, resourceVersion, ..."""

    def __init__(self, portal: anyio.from_thread.BlockingPortal) -> None:
        self._portal = portal

    @abstractmethod
    def ask(self, call: Call) -> Outcome:
        """Anything but a watch."""

    @abstractmethod
    def _watch(self, call: Call) -> AbstractContextManager[Stream]: ...

    def create(
        self,
        kind: Kind[Any],
        document: Document,
        namespace: str = "",
        *,
        name: str = "",
        subresource: str = "",
        **options: Any,
    ) -> Outcome:
        return self.ask(Call("create", kind, namespace, options, name, subresource, document))

    def get(
        self, kind: Kind[Any], name: str, namespace: str = "", *, subresource: str = "", **options: Any
    ) -> Outcome:
        return self.ask(Call("get", kind, namespace, options, name, subresource))

    def list(self, kind: Kind[Any], namespace: str = "", **options: Any) -> Outcome:
        return self.ask(Call("list", kind, namespace, options))

    def update(
        self,
        kind: Kind[Any],
        document: Document,
        namespace: str = "",
        *,
        subresource: str = "",
        **options: Any,
    ) -> Outcome:
        name = document["metadata"]["name"]
        return self.ask(Call("update", kind, namespace, options, name, subresource, document))

    def patch(
        self,
        kind: Kind[Any],
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        form: str = "merge",
        subresource: str = "",
        **options: Any,
    ) -> Outcome:
        return self.ask(Call("patch", kind, namespace, options, name, subresource, patch, form))

    def delete(
        self, kind: Kind[Any], name: str, namespace: str = "", *, body: Document | None = None
    ) -> Outcome:
        return self.ask(Call("delete", kind, namespace, name=name, body=body))

    def delete_collection(self, kind: Kind[Any], namespace: str = "", **options: Any) -> Outcome:
        return self.ask(Call("delete_collection", kind, namespace, options))

    def watch(self, kind: Kind[Any], namespace: str = "", **options: Any) -> AbstractContextManager[Stream]:
        return self._watch(Call("watch", kind, namespace, options))


async def patiently(receive: Callable[[], Awaitable[T]]) -> T:
    """What comes, within the limit of every test."""
    with anyio.fail_after(PATIENCE_SECONDS):
        return await receive()
