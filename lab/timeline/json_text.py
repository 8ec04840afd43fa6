"""JSON as short as it can be: a time line has many rows."""

from __future__ import annotations

import json
from typing import Final

from nominee.machinery.wire.values.scalars import Json

# An encoder for each call would take longer than a row; the documents are made here, and have no circles.
_ENCODE: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode


def compact(document: Json) -> str:
    """Return a document as JSON without spaces."""
    return _ENCODE(document)
