"""The stored objects as an API server shows them: a list, or an event of a watch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from google.protobuf.message import Message

from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import AnyKind


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects that a client asks for: of a kind, in a namespace ("" for all), by selectors.

    `matches` None: there are no selectors, the texts of which are in `selectors`.
    """

    kind: AnyKind
    namespace: str = ""
    selectors: tuple[str, str] = ("", "")
    matches: Callable[[Message], bool] | None = None

    def has(self, revision: Revision, obj: Message | None) -> bool:
        """Return whether an object is selected, the one before or after a write."""
        if obj is None or (self.namespace and revision.namespace != self.namespace):
            return False
        return self.matches is None or self.matches(obj)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A list, or the first events of a watch: the selected objects as of `revision`, by resourceVersion.

    `is_whole`: not one page of several.
    """

    client: str
    selection: Selection
    revision: int
    versions: frozenset[int]
    is_whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An event of a watch that has shown everything up to `after`. `removed` None is a bookmark."""

    client: str
    selection: Selection
    after: int
    revision: int
    removed: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """A watch that begins after `revision`, of a client that was shown nothing after `newest`."""

    client: str
    selection: Selection
    revision: int
    newest: int


Read: TypeAlias = State | Change | Resumption
