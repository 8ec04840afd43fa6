"""One turn of the event loop, as a unit of waiting that needs no clock."""

from __future__ import annotations

import types
from collections.abc import Generator


@types.coroutine
def next_turn() -> Generator[None, None, None]:
    """Wait until the loop has run every callback that is ready now."""
    yield
