"""The table of what the standard commands find, and whether that is enough. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nominee.lab.reports.markdown import markup_line, table_head
from tests.mutations.standard.results import UNMUTATED, Results
from tests.mutations.unseen.unseen import Unseen

UNSEEN_SHARE_MIN: Final = 0.8
_COLUMNS: Final = ("mutation", "component", "disturbed", "found by", "case", "runs", "seconds", "observed")
_OBSERVED_LENGTH_MAX: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The mutations to measure: the names of the known ones, and the unseen ones by name."""

    known: Sequence[str]
    unseen: Mapping[str, Unseen]

    @property
    def names(self) -> list[str]:
        """Return all names in the order of the table, the program itself first."""
        return [UNMUTATED, *self.known, *self.unseen]


def lines(chosen: Chosen, results: Results) -> Iterator[str]:
    """Yield the table, and the sums below it."""
    yield from table_head(_COLUMNS)
    for name in chosen.names:
        yield _row(name, chosen.unseen.get(name), results)
    yield ""
    yield f"known: {_share(chosen.known, results)}"
    yield f"unseen: {_share(chosen.unseen, results)}"
    for disturbed, what in ((True, "disturbed"), (False, "undisturbed")):
        yield f"  {what}: {_share(_where(chosen.unseen, disturbed=disturbed), results)}"
    for component in dict.fromkeys(each.component for each in chosen.unseen.values()):
        names = [name for name, each in chosen.unseen.items() if each.component == component]
        yield f"  {component}: {_share(names, results)}"


def problems(chosen: Chosen, results: Results) -> list[str]:
    """Return why the commands do not find enough, or too much."""
    found = []
    false_alarm = results.finding(UNMUTATED)
    if false_alarm is not None:
        found.append(f"without a mutation {false_alarm.label} reports: {false_alarm.observation}")
    found += [
        f"without a mutation {each.label} cannot be run: {each.error}"
        for each in results.unfinished(UNMUTATED)
    ]
    missed = [name for name in chosen.known if results.finding(name) is None]
    if missed:
        found.append(f"known and not found: {', '.join(missed)}")
    count = sum(results.finding(name) is not None for name in chosen.unseen)
    if count < UNSEEN_SHARE_MIN * len(chosen.unseen):
        found.append(f"{count} of {len(chosen.unseen)} unseen are fewer than {UNSEEN_SHARE_MIN:.0%}")
    return found


def _where(unseen: Mapping[str, Unseen], *, disturbed: bool) -> list[str]:
    return [name for name, each in unseen.items() if each.disturbed is disturbed]


def _share(names: Iterable[str], results: Results) -> str:
    every = list(names)
    return f"{sum(results.finding(name) is not None for name in every)} of {len(every)}"


def _row(name: str, unseen: Unseen | None, results: Results) -> str:
    ran, finding = results.of(name), results.finding(name)
    labels = [each.label for each in results.of(UNMUTATED) if each.reached]
    is_reached = not labels or any(results.reaching(name, label) for label in labels)
    by, case = "not found" if ran else "not run" if is_reached else "not reached", ""
    observed = "; ".join(each.error for each in results.unfinished(name))
    if finding is not None:
        by, case, observed = (
            finding.label,
            f"`{finding.case}`" if finding.case else "none",
            finding.observation,
        )
    elif name == UNMUTATED and ran and not observed:
        by = "silent"
    return markup_line(
        [
            name,
            unseen.component if unseen is not None else "",
            "" if unseen is None else "yes" if unseen.disturbed else "no",
            by,
            case,
            str(sum(each.runs for each in ran)),
            f"{sum(each.seconds for each in ran):.0f}",
            observed
            if len(observed) <= _OBSERVED_LENGTH_MAX
            else f"{observed[: _OBSERVED_LENGTH_MAX - 3]}...",
        ]
    )
