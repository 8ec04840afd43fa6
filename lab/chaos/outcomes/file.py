"""The file of recorded outcomes, beside the file of the scenarios: `outcomes/stories-jobs.yaml`.

It has the facts of each scenario that its runs with several seeds had in common, by subject. The facts that
most subjects of a kind have stand once, below `usual`, and those that a subject has in most cases of a
scenario below `usually`. Elsewhere stand the facts that are otherwise, and in `without` the names of usual
facts that are missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from nominee.lab.chaos.outcomes.comparison import Outcomes, Recorded
from nominee.machinery.wire.files.manifests import dump_yaml, load_documents
from nominee.machinery.wire.values.scalars import Json

_Row = Mapping[str, list[str]]
"""The texts of the facts of a subject, by name."""
_FOLDER: Final = "outcomes"
_HEAD: Final = (
    "# The outcomes, recorded by `nominee chaos explore {file} --simulate --outcomes record`.\n"
    '# A change here is a change of what users see: read it as one (docs/chaos.md, "Recorded outcomes").\n'
)
_SEEDS, _USUAL, _SCENARIOS, _CASES, _USUALLY = "seeds", "usual", "scenarios", "cases", "usually"
_UNDISTURBED: Final = "undisturbed"
_WITHOUT, _BETWEEN = "without", ", "
_WIDTH: Final = 200


def path_for(scenario_file: Path) -> Path:
    """Return the path of the outcomes of a file's scenarios."""
    return scenario_file.parent / _FOLDER / scenario_file.name


def read(path: Path) -> dict[str, Outcomes]:
    """Return the recorded outcomes by the name of the scenario; none without a file.

    Raises:
        ValueError: the file has no recorded outcomes.
    """
    if not path.is_file():
        return {}
    documents = load_documents(path.read_text(encoding="utf-8"))
    if len(documents) != 1 or not isinstance(documents[0], dict) or _SCENARIOS not in documents[0]:
        raise ValueError(f"{path} has no recorded outcomes: record them again with --outcomes record")
    document = documents[0]
    usual = {kind: _row(facts) for kind, facts in document[_USUAL].items()}
    return {
        name: Outcomes(
            seeds=scenario[_SEEDS],
            plain=_whole(scenario[_UNDISTURBED], usual),
            cases=_whole_cases(scenario.get(_CASES, {}), usual),
        )
        for name, scenario in document[_SCENARIOS].items()
    }


def write(path: Path, outcomes: Mapping[str, Outcomes]) -> None:
    """Write recorded outcomes."""
    usual = _usual(each.plain for each in outcomes.values())
    scenarios: dict[str, Json] = {}
    for name, each in outcomes.items():
        scenarios[name] = {_SEEDS: list(each.seeds), _UNDISTURBED: _short(each.plain, usual)}
        if each.cases:
            scenarios[name][_CASES] = _short_cases(each.cases, usual)
    document = {_USUAL: {kind: _json(row) for kind, row in sorted(usual.items())}, _SCENARIOS: scenarios}
    path.parent.mkdir(exist_ok=True)
    head = _HEAD.format(file=f"{path.parent.parent.name}/{path.name}")
    path.write_text(head + dump_yaml(document, sort_keys=False, width=_WIDTH), encoding="utf-8")


def _kind(subject: str) -> str:
    return subject.partition(" ")[0]


def _usual(outcomes: Iterable[Recorded]) -> dict[str, _Row]:
    """Return by kind the facts that more than half of its subjects have."""
    rows: dict[str, list[_Row]] = {}
    for recorded in outcomes:
        for subject, row in recorded.items():
            rows.setdefault(_kind(subject), []).append(row)
    return {kind: _most_common(found) for kind, found in rows.items() if len(found) > 1}


def _most_common(rows: Sequence[_Row]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in sorted({name for row in rows for name in row}):
        counts = Counter(tuple(row[name]) for row in rows if name in row)
        texts, count = counts.most_common(1)[0]
        if count * 2 > len(rows):
            found[name] = list(texts)
    return found


def _short_cases(cases: Mapping[str, Recorded], usual: Mapping[str, _Row]) -> Json:
    """Return the facts of most cases, and of each case those that are otherwise."""
    subjects = sorted({subject for recorded in cases.values() for subject in recorded})
    usually = {
        subject: _most_common([recorded.get(subject, {}) for recorded in cases.values()])
        for subject in subjects
    }
    found: dict[str, Json] = {_USUALLY: _short(usually, usual)}
    for case, recorded in cases.items():
        rows = {subject: _otherwise(recorded.get(subject, {}), usually[subject]) for subject in subjects}
        found[case] = {subject: _json(row) for subject, row in rows.items() if row}
    return found


def _whole_cases(cases: Mapping[str, Json], usual: Mapping[str, _Row]) -> dict[str, Recorded]:
    usually = _whole(cases.get(_USUALLY, {}), usual)
    found: dict[str, Recorded] = {}
    for case, rows in cases.items():
        if case != _USUALLY:
            subjects = dict.fromkeys([*usually, *rows])
            found[case] = {
                each: _together(_row(rows.get(each, {})), usually.get(each, {})) for each in subjects
            }
    return found


def _short(recorded: Recorded, usual: Mapping[str, _Row]) -> Json:
    rows = {subject: _otherwise(row, usual.get(_kind(subject), {})) for subject, row in recorded.items()}
    return {subject: _json(row) for subject, row in rows.items()}


def _whole(rows: Mapping[str, Json], usual: Mapping[str, _Row]) -> Recorded:
    return {subject: _together(_row(row), usual.get(_kind(subject), {})) for subject, row in rows.items()}


def _otherwise(row: _Row, usual: _Row) -> dict[str, list[str]]:
    """Return the facts that are not the usual ones, and the names of those that are missing."""
    found = {name: texts for name, texts in row.items() if usual.get(name) != texts}
    missing = [name for name in usual if name not in row]
    if missing:
        found[_WITHOUT] = [_BETWEEN.join(missing)]
    return found


def _together(row: _Row, usual: _Row) -> dict[str, list[str]]:
    """Return the facts that `_otherwise` made short."""
    missing = "".join(row.get(_WITHOUT, ())).split(_BETWEEN)
    return {name: texts for name, texts in {**usual, **row}.items() if name not in (_WITHOUT, *missing)}


def _json(row: _Row) -> Json:
    return {name: texts[0] if len(texts) == 1 else list(texts) for name, texts in row.items()}


def _row(facts: Mapping[str, Json]) -> _Row:
    return {name: [texts] if isinstance(texts, str) else list(texts) for name, texts in facts.items()}
