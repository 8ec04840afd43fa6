"""Run all checks over the files that git knows."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.style.any_type import find_any
from tests.style.cache import FindingsCache
from tests.style.clauses import find_what_clauses
from tests.style.docstrings import find_docstring_faults
from tests.style.findings import Finding
from tests.style.language import BannedWords, read_banned_words
from tests.style.names import find_participle_names
from tests.style.sizes import find_long_file, find_long_functions

ROOT = Path(__file__).resolve().parents[2]
CACHE_FILE = ROOT / "build/style.json"
SKIPPED = ("tests/golden/",)
"""Recordings of the real components, with their texts."""
MAKEFILE = "Makefile"


def project_files(root: Path = ROOT) -> list[str]:
    """Return the paths of the Python and Markdown files and the Makefile, but of no file that git ignores."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.md", MAKEFILE]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.splitlines()
    return sorted(path for path in set(listed) if not path.startswith(SKIPPED) and (root / path).is_file())


def findings_in(path: str, text: str, words: BannedWords) -> Iterator[Finding]:
    """Yield all findings of one file; tests need no docstrings, and of a Makefile only comments are read."""
    yield from words.find(path, comments_of(text) if path == MAKEFILE else text)
    yield from find_long_file(path, text)
    if path.endswith(".py"):
        tree = ast.parse(text, path)
        yield from find_long_functions(path, tree)
        if not path.startswith("tests/") or path.startswith(("tests/support/", "tests/style/")):
            yield from find_docstring_faults(path, tree)
            yield from find_what_clauses(path, tree)
            yield from find_participle_names(path, tree)
            if not path.startswith("tests/style/"):
                yield from find_any(path, text)


def comments_of(text: str) -> str:
    """Return a Makefile's text with an empty line for each line that is no comment."""
    return "\n".join(line if line.startswith("#") else "" for line in text.split("\n"))


def all_findings(root: Path = ROOT, cache_file: Path = CACHE_FILE) -> list[Finding]:
    """Return the findings of the whole project, sorted by path and line."""
    words, cache = read_banned_words(), FindingsCache(cache_file)
    found: list[Finding] = []
    for path in project_files(root):
        data = (root / path).read_bytes()
        own = cache.get(path, data)
        if own is None:
            own = list(findings_in(path, data.decode(), words))
            cache.put(path, data, own)
        found += own
    cache.save()
    return sorted(found)
