"""The findings of checks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A violation of one rule at a line of a file."""

    path: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"

    @property
    def package(self) -> str:
        """Return the top-level folder, or the second level below `tests`; "." for a file at the top."""
        parts = self.path.split("/")[:-1]
        return "/".join(parts[:2] if parts[:1] == ["tests"] else parts[:1]) or "."
