"""Find uses of `Any`, which hides mistakes from mypy."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.style.findings import Finding

_ANY = re.compile(r"\bAny\b")
_IGNORED = re.compile(r"\s*(?:#|from \S+ import |Any,$)")


def find_any(path: str, text: str) -> Iterator[Finding]:
    """Yield a finding for each use of `Any` outside imports and comments."""
    if "Any" not in text:
        return
    for number, line in enumerate(text.splitlines(), 1):
        if not _IGNORED.match(line):
            for _ in _ANY.finditer(line):
                yield Finding(path, number, "any", "write the type, a TypeVar or `object`")
