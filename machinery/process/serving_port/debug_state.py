"""A process's state, served under `/debug/state` to be compared with the objects that the API server has.

Source: kube-scheduler's CacheDebugger, which compares its cache with its listers and logs the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

from nominee.machinery.process.serving_port.serving import Serving
from nominee.machinery.wire.values.scalars import Json

if TYPE_CHECKING:
    # Starlette is imported with the first page: most processes serve none.
    from starlette.requests import Request
    from starlette.responses import Response

PATH: Final = "/debug/state"


class Copy(Protocol):
    """A local copy of objects: an informer."""

    def state(self) -> dict[str, Json]:
        """Return the objects that are copied, and the revision of each, as JSON."""
        ...


class DebugState:
    """The parts of the document, in the order in which they were added."""

    def __init__(self, serving: Serving, copies: Iterable[Copy]) -> None:
        self._copies = tuple(copies)
        self._parts: dict[str, Callable[[], Json]] = {}
        serving.add_route(PATH, self._answer)

    def add(self, name: str, part: Callable[[], Json]) -> None:
        """Add a part, which is computed for each request."""
        self._parts[name] = part

    def document(self) -> dict[str, Json]:
        """Return the document: the copies in `copies`, and each part by its name."""
        parts = {name: part() for name, part in self._parts.items()}
        return {"copies": [copy.state() for copy in self._copies], **parts}

    async def _answer(self, _request: Request) -> Response:
        from starlette.responses import JSONResponse

        return JSONResponse(self.document())
