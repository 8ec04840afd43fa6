"""Semantic versions as device attributes carry them (semver.org 2.0.0, strict, as upstream parses them)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = r"(0|[1-9][0-9]{0,19})"
_STRICT = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)
_LOOSE = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?((?:[-+].*)?)", re.ASCII)
_UINT64_MAX = (1 << 64) - 1
_UINT64_DIGITS = 20


class SemverError(ValueError):
    """The text is no semantic version."""


@dataclass(frozen=True, slots=True)
class Semver:
    """One version; `pre` holds the dot-separated identifiers before a release, `build` does not compare."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()
    build: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, *, normalize: bool = False) -> Semver:
        """SemverError unless strict; with `normalize`, `v1.01` is 1.1.0."""
        if normalize and (loose := _LOOSE.fullmatch(text)):
            numbers = ((number or "").lstrip("0") or "0" for number in loose.groups()[:3])
            text = ".".join(numbers) + loose[4]
        match = _STRICT.fullmatch(text)
        if not match:
            raise SemverError(f'"{text}" is not a semantic version')
        pre = tuple(match[4].split(".")) if match[4] else ()
        if any(part.isdigit() and len(part) > 1 and part[0] == "0" for part in pre):
            raise SemverError("Numeric PreRelease version must not contain leading zeroes")
        if any(part.isdigit() and len(part) > _UINT64_DIGITS for part in pre):
            raise SemverError(f'"{text}" is out of range')
        major, minor, patch = (int(number) for number in match.groups()[:3])
        if max(major, minor, patch) > _UINT64_MAX:
            raise SemverError(f'"{text}" is out of range')
        return cls(major, minor, patch, pre, tuple(match[5].split(".")) if match[5] else ())

    def compare(self, other: Semver) -> int:
        """-1, 0 or 1 by precedence."""
        mine, theirs = (self.major, self.minor, self.patch), (other.major, other.minor, other.patch)
        if mine != theirs:
            return 1 if mine > theirs else -1
        if not self.pre or not other.pre:
            return bool(other.pre) - bool(self.pre)
        mine_pre, theirs_pre = _precedence(self.pre), _precedence(other.pre)
        return (mine_pre > theirs_pre) - (mine_pre < theirs_pre)

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        text += "-" + ".".join(self.pre) if self.pre else ""
        return text + ("+" + ".".join(self.build) if self.build else "")


def _precedence(pre: tuple[str, ...]) -> list[tuple[bool, int, str]]:
    """Return a sort key: numbers come before words, and compare as numbers."""
    return [(False, int(p), "") if p.isdigit() else (True, 0, p) for p in pre]
