"""Findings of files that have not changed since the last check, in a file below `build`."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from tests.style.findings import Finding

_HERE = Path(__file__).parent
_Entry = tuple[str, tuple[tuple[int, str, str], ...]]
"""The digest of a file, and line, rule and text of each finding."""


def _checks_digest() -> str:
    """Return a digest of the checks themselves and of the banned words."""
    sources = sorted([*_HERE.glob("*.py"), *_HERE.glob("banned_words.toml")])
    return sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()


class FindingsCache:
    """The findings of each file, by its path and a digest of its text. Other checks have an empty cache."""

    def __init__(self, file: Path) -> None:
        self._file, self._checks = file, _checks_digest()
        self._old = self._read()
        self._new: dict[str, _Entry] = {}

    def _read(self) -> dict[str, _Entry]:
        try:
            document = json.loads(self._file.read_text(encoding="utf-8"))
            files = document["files"] if document["checks"] == self._checks else {}
            return {
                path: (digest, tuple((line, rule, text) for line, rule, text in found))
                for path, (digest, found) in files.items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}

    def get(self, path: str, data: bytes) -> list[Finding] | None:
        """Return the findings of a file with this content, or None if it was not checked."""
        entry = self._old.get(path)
        if entry is None or entry[0] != sha256(data).hexdigest():
            return None
        self._new[path] = entry
        return [Finding(path, line, rule, text) for line, rule, text in entry[1]]

    def put(self, path: str, data: bytes, found: list[Finding]) -> None:
        """Keep the findings of a file."""
        self._new[path] = sha256(data).hexdigest(), tuple((each.line, each.rule, each.text) for each in found)

    def save(self) -> None:
        """Write the file, where anything has changed; other processes see the old or the new one."""
        if self._new == self._old:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps({"checks": self._checks, "files": self._new}), encoding="utf-8")
        new.replace(self._file)
