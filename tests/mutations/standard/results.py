"""The results of commands with mutations, as lines of JSON, so that a stopped run can go on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

UNMUTATED: Final = "(none)"
"""The name of the program itself, which the commands must find nothing in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One command with one mutation.

    `observation` is the first finding, or ""; `case` is what disturbed the cluster then, "" if
    nothing did, or the seed. `error` is why the command could not be carried out to its end.
    """

    mutation: str
    label: str
    words: tuple[str, ...]
    commit: str
    observation: str = ""
    case: str = ""
    scenario: str = ""
    error: str = ""
    runs: int = 0
    seconds: float = 0.0
    reached: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def is_found(self) -> bool:
        return bool(self.observation)

    @property
    def is_complete(self) -> bool:
        """Report whether the command need not be run again."""
        return self.is_found or not self.error


class Results:
    """The results of one commit, by mutation, in the order in which they came; saved at once."""

    def __init__(self, file: Path, commit: str) -> None:
        """Read the file, if there is one; the results of other commits in it are not of this program."""
        self._file = file
        self._by_mutation: dict[str, list[Result]] = {}
        self._tried: set[tuple[str, tuple[str, ...]]] = set()
        for result in _read(file):
            if result.commit == commit:
                self._by_mutation.setdefault(result.mutation, []).append(result)

    def add(self, result: Result) -> None:
        self._tried.add((result.mutation, result.words))
        self._by_mutation.setdefault(result.mutation, []).append(result)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as out:
            out.write(f"{json.dumps(asdict(result))}\n")

    def of(self, mutation: str) -> list[Result]:
        return list(self._by_mutation.get(mutation, ()))

    def has(self, mutation: str, words: tuple[str, ...]) -> bool:
        """Report whether the command, with just these words, was carried out with the mutation."""
        return any(result.words == words and result.is_complete for result in self.of(mutation))

    def is_due(self, mutation: str, words: tuple[str, ...]) -> bool:
        """Report whether the command is to be run: never carried out, and not tried by this process."""
        return (mutation, words) not in self._tried and not self.has(mutation, words)

    def reaching(self, mutation: str, label: str) -> Sequence[str]:
        """Return the cases of a command that a mutation may change, "*" where that is not known.

        Those of the longest run count, also for a shorter one.
        """
        known = [each for each in self.of(UNMUTATED) if each.label == label and each.reached]
        if mutation == UNMUTATED or not known:
            return ("*",)
        return max(known, key=lambda each: each.runs).reached.get(mutation, ())

    def unfinished(self, mutation: str) -> list[Result]:
        """Return the results of commands that could not be carried out, and were not since."""
        return [
            each for each in self.of(mutation) if not each.is_complete and not self.has(mutation, each.words)
        ]

    def finding(self, mutation: str) -> Result | None:
        """Return the first result that found something."""
        return next((result for result in self.of(mutation) if result.is_found), None)


def _read(file: Path) -> Iterable[Result]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue  # the last line of a run that was killed
        yield Result(**{**row, "words": tuple(row["words"])})
