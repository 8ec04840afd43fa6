"""Recorded outcomes: the facts that many runs have in common, and their comparison with one run. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nominee.lab.chaos.outcomes.facts import NUMBERS, STEPS, Facts

Recorded = dict[str, dict[str, list[str]]]
"""By subject and name of a fact: the texts that it may have; of a number a range, as `0.5..2`.

A text that begins with `...` stands for all that end as it does.
"""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The recorded outcomes of a scenario: `plain` of its undisturbed run, and of cases by their identifiers.

    They are those of runs with these seeds, and nothing is said of others: a simulation is deterministic.
    """

    seeds: Sequence[int]
    plain: Recorded
    cases: Mapping[str, Recorded] = field(default_factory=dict)

    def of(self, case: str, seed: int) -> Recorded | None:
        """Return the outcome of a case, "" for the undisturbed run, if there is one for this seed."""
        if seed not in self.seeds:
            return None
        return self.cases.get(case) if case else self.plain


TEXTS_MAX: Final = 4
"""A fact with more texts in the recorded runs is left out; of a field, then, the last value may be one."""
_THEN, _ANY, _ABSENT, _TO = " > ", "... > ", "absent", ".."
_SHARE, _SECONDS = 0.15, 1.0
"""A step may last so much longer or shorter than in the recorded runs."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that is not as recorded."""

    subject: str
    name: str
    text: str
    texts: Sequence[str]

    def __str__(self) -> str:
        usual = ", or ".join(repr(each) for each in self.texts)
        return f"{self.subject}: {self.name} is {self.text!r}, where {usual} is recorded"


def record(runs: Sequence[Facts]) -> Recorded:
    """Return the facts that several runs have in common; a subject of some of them may have none."""
    found: Recorded = {}
    for subject in sorted({subject for facts in runs for subject in facts}):
        rows = [facts.get(subject, {}) for facts in runs]
        found[subject] = {}
        for name in sorted({name for row in rows for name in row}):
            texts = _common([row.get(name, _ABSENT) for row in rows], is_number=name.endswith(NUMBERS))
            if texts:
                found[subject][name] = texts
    return found


def _common(texts: Sequence[str], *, is_number: bool) -> list[str]:
    if is_number:
        numbers = sorted(float(each) for each in texts if each != _ABSENT)
        return [f"{numbers[0]:g}{_TO}{numbers[-1]:g}"] if len(numbers) == len(texts) else []
    several = sorted(set(texts))
    if len(several) <= min(TEXTS_MAX, max(1, len(texts) // 2)):
        return several
    ends = {each.rpartition(_THEN)[2] for each in several}
    return [f"{_ANY}{ends.pop()}"] if len(ends) == 1 else []


def differences(facts: Facts, recorded: Recorded) -> Iterator[Difference]:
    """Yield the facts of a run that are not as recorded, subjects that are new or missing first."""
    for subject in facts.keys() - recorded.keys():
        if "object" in facts[subject]:
            yield Difference(subject, "object", facts[subject]["object"], [_ABSENT])
    for subject, names in recorded.items():
        row: Mapping[str, str] = facts.get(subject, {})
        for name in dict.fromkeys([*names, *row]):
            if name not in names:
                continue
            text = row.get(name, _ABSENT)
            if not _matches(subject, name, text, names[name]):
                yield Difference(subject, name, text, names[name])


def _matches(subject: str, name: str, text: str, recorded: Sequence[str]) -> bool:
    if not name.endswith(NUMBERS):
        return any(
            text == each or (each.startswith(_ANY) and text.rpartition(_THEN)[2] == each[len(_ANY) :])
            for each in recorded
        )
    if text == _ABSENT:
        return False
    least, greatest = map(float, recorded[0].split(_TO))
    if subject == STEPS:
        least, greatest = least * (1 - _SHARE) - _SECONDS, greatest * (1 + _SHARE) + _SECONDS
    return least <= float(text) <= greatest
