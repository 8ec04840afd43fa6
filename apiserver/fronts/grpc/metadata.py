"""The metadata of a gRPC call, as headers."""

from __future__ import annotations

from collections.abc import Callable, Iterable


class CallMetadata:
    """The metadata of a call, or of a stream with many calls; read when it is needed, and kept."""

    __slots__ = ("_found", "_pairs")

    def __init__(self, pairs: Callable[[], Iterable[tuple[str, str | bytes]] | None]) -> None:
        self._pairs = pairs
        self._found: dict[str, list[tuple[str, str]]] = {}

    def matching(self, prefix: str) -> list[tuple[str, str]]:
        """Return the pairs whose keys begin so: REST's headers, with names in lower case."""
        found = self._found.get(prefix)
        if found is None:
            found = [(key, str(value)) for key, value in self._pairs() or () if key.startswith(prefix)]
            self._found[prefix] = found
        return found
