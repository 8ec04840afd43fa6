"""The file of recorded outcomes, beside the file of the scenarios: `outcomes/stories-jobs.yaml`.

It has the facts of each scenario that runs with several seeds had in common, by subject. The facts that most
subjects of a kind have stand once, below `usual`; a subject has those that it has otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nominee.lab.chaos.outcomes.comparison import Recorded
from nominee.machinery.wire.files.manifests import dump_yaml, load_documents
from nominee.machinery.wire.values.scalars import Json

_FOLDER: Final = "outcomes"
_HEAD: Final = (
    "# The outcomes, recorded by `nominee chaos explore {file} --simulate --outcomes record`.\n"
    '# A change here is a change of what users see: read it as one (docs/chaos.md, "Recorded outcomes").\n'
)
_USUAL, _SCENARIOS = "usual", "scenarios"
_WITHOUT: Final = "without"
"""The names of the usual facts that a subject has not."""
_BETWEEN: Final = ", "
_WIDTH: Final = 200


def path_for(scenario_file: Path) -> Path:
    """Return the path of the outcomes of a file's scenarios."""
    return scenario_file.parent / _FOLDER / scenario_file.name


def read(path: Path) -> dict[str, Recorded]:
    """Return the recorded outcomes by the name of the scenario; none without a file.

    Raises:
        ValueError: the file has no recorded outcomes.
    """
    if not path.is_file():
        return {}
    documents = load_documents(path.read_text(encoding="utf-8"))
    if len(documents) != 1 or not isinstance(documents[0], dict) or _SCENARIOS not in documents[0]:
        raise ValueError(f"{path} has no recorded outcomes: record them again with --outcomes record")
    usual = {kind: _texts(facts) for kind, facts in documents[0].get(_USUAL, {}).items()}
    return {
        name: {subject: _whole(subject, _texts(facts), usual) for subject, facts in subjects.items()}
        for name, subjects in documents[0][_SCENARIOS].items()
    }


def write(path: Path, outcomes: Mapping[str, Recorded]) -> None:
    """Write recorded outcomes."""
    usual = _usual(outcomes)
    document: Json = {
        _USUAL: {kind: _json(facts) for kind, facts in sorted(usual.items())},
        _SCENARIOS: {
            name: {subject: _json(_otherwise(subject, facts, usual)) for subject, facts in recorded.items()}
            for name, recorded in outcomes.items()
        },
    }
    path.parent.mkdir(exist_ok=True)
    head = _HEAD.format(file=f"{path.parent.parent.name}/{path.name}")
    path.write_text(head + dump_yaml(document, sort_keys=False, width=_WIDTH), encoding="utf-8")


def _kind(subject: str) -> str:
    return subject.partition(" ")[0]


def _usual(outcomes: Mapping[str, Recorded]) -> Recorded:
    """Return by kind the facts that more than half of its subjects have."""
    rows: dict[str, list[dict[str, list[str]]]] = {}
    for recorded in outcomes.values():
        for subject, facts in recorded.items():
            rows.setdefault(_kind(subject), []).append(facts)
    found: Recorded = {}
    for kind, row in rows.items():
        for name in sorted({name for facts in row for name in facts}):
            counts = Counter(tuple(facts[name]) for facts in row if name in facts)
            texts, count = counts.most_common(1)[0]
            if len(row) > 1 and count * 2 > len(row):
                found.setdefault(kind, {})[name] = list(texts)
    return found


def _otherwise(subject: str, facts: Mapping[str, list[str]], usual: Recorded) -> dict[str, list[str]]:
    of_kind = usual.get(_kind(subject), {})
    without = [name for name in of_kind if name not in facts]
    others = {name: texts for name, texts in facts.items() if of_kind.get(name) != texts}
    if without:
        others[_WITHOUT] = [_BETWEEN.join(without)]
    return others


def _whole(subject: str, facts: Mapping[str, list[str]], usual: Recorded) -> dict[str, list[str]]:
    without = "".join(facts.get(_WITHOUT, ())).split(_BETWEEN)
    together = usual.get(_kind(subject), {}) | dict(facts)
    return {name: texts for name, texts in together.items() if name not in (_WITHOUT, *without)}


def _json(facts: Mapping[str, list[str]]) -> Json:
    return {name: texts[0] if len(texts) == 1 else list(texts) for name, texts in facts.items()}


def _texts(facts: Mapping[str, Json]) -> dict[str, list[str]]:
    return {name: [texts] if isinstance(texts, str) else list(texts) for name, texts in facts.items()}
