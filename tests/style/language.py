"""Find banned words in Python code, command help and documentation."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.style.findings import Finding

WORDS_FILE = Path(__file__).with_name("banned_words.toml")
_BREAK = r"(?:[ _]?|\s*\n\s*(?:#+ ?)?)"
"""Between two words: a space, an underscore, nothing (CamelCase), or a line break and a comment sign."""


@dataclass(frozen=True, slots=True)
class BannedWords:
    """The banned words as one pattern, with a replacement for each, and the terms that may contain them.

    The patterns are for text in lower case: a search that ignores case takes twice as long.
    """

    pattern: re.Pattern[str]
    terms: re.Pattern[str]
    replacements: dict[str, str]
    exact: frozenset[str]

    def find(self, path: str, text: str) -> Iterator[Finding]:
        """Yield a finding for each banned word of a text, also as a part of an identifier."""
        lower = _lower(text)
        for match in self.pattern.finditer(lower):
            start, end = match.span()
            if not _is_word(text, start, end):
                continue
            word = self._word(match.group())
            if word in self.exact and text[start:end] != match.group():
                continue
            spans = (term.span() for term in self.terms.finditer(lower))
            if any(first <= start and end <= last for first, last in spans):
                continue
            line = text.count("\n", 0, start) + 1
            yield Finding(path, line, "word", f"`{word}`: write {self.replacements[word]}")

    def _word(self, found: str) -> str:
        """Return the word of the list that a match stands for."""
        letters = re.sub(r"[^a-z]", "", found)
        return next(word for word in self.replacements if word.replace(" ", "") == letters)


def read_banned_words(file: Path = WORDS_FILE) -> BannedWords:
    """Read the banned words from a TOML file with the tables `words`, `allowed` and `exact`."""
    tables = tomllib.loads(file.read_text())
    words: dict[str, str] = {**tables["words"], **tables["exact"]}
    return BannedWords(_pattern(words), _pattern(tables["allowed"]), words, frozenset(tables["exact"]))


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(word.replace(" ", _BREAK) for word in words))


def _lower(text: str) -> str:
    """Return a text of the same length in lower case."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(each if len(each.lower()) > 1 else each.lower() for each in text)


def _is_word(text: str, start: int, end: int) -> bool:
    """Return whether text[start:end] is no part of a longer word; a capital begins a word in CamelCase."""
    before, after = text[start - 1 : start], text[end : end + 1]
    begins = not before.isalpha() or (text[start].isupper() and before.islower())
    ends = not after.isalpha() or (after.isupper() and text[end - 1].islower())
    return begins and ends
