"""The results of a matrix as data: cells, and the verdicts on the answers of KEPs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from nominee.lab.history.object_history import command
from nominee.lab.reports.records import Record
from nominee.lab.scenario.format.replacing import words_of
from nominee.lab.scenario.result import Outcome, ScenarioResult
from nominee.lab.skew.matrix.model import Answer, JsonObject, Row, holds, when_text
from nominee.lab.skew.matrix.planning import MatrixPlan, PlannedCell
from nominee.machinery.wire.values.scalars import Json

NAME = "skew.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """A cell that was run. `commit` is that of Nominee's clone, "" for an installed package."""

    planned: PlannedCell
    result: ScenarioResult
    commit: str = ""

    @property
    def passed(self) -> bool:
        """Return whether everything held."""
        return self.result.outcome is Outcome.PASSED

    def as_json(self, directory: Path) -> JsonObject:
        """Return the cell as JSON; `directory` is that of the report, for the commands."""
        planned, cell = self.planned, self.planned.cell
        return {
            "id": planned.id,
            "name": cell.name,
            "row": cell.row.name,
            "kep": cell.row.kep,
            "section": cell.row.section,
            "values": dict(cell.values),
            "stages": [{"label": stage.label, **stage.setting.as_json()} for stage in cell.stages],
            "unsupported": list(cell.unsupported),
            "seen": [each.as_json() for each in planned.seen],
            **self.result.as_json(),
            "directory": f"cells/{planned.id}",
            "simulated": planned.simulated,
            "programs": {name: shlex.join(command) for name, command in cell.programs.items()},
            "reproduce": self.reproduce(directory),
            "historyCommand": self.history_command(directory),
        }

    def reproduce(self, directory: Path) -> str:
        """Return the command that plays the cell again, where the matrix was run."""
        planned = self.planned
        options = ["--simulate"] if planned.simulated else words_of(planned.cell.programs)
        file = directory / "cells" / planned.id / "scenario.yaml"
        return shlex.join(["nominee", "scenario", "run", *options, str(file)])

    def history_command(self, directory: Path) -> str:
        """Return the command that shows the history of the objects at fault, where the matrix was run."""
        return command(str(directory / "cells" / self.planned.id), self.result.objects)


class Verdict(Enum):
    """The result of comparing an answer of a KEP with the cells."""

    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    UNTESTED = "not tested"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswer(Record):
    """An answer, the cells that decided, and those that contradict it with what was seen there.

    `outside` counts the cells outside the version skew policy; `shown` are the cases of those that confirm.
    """

    answer: Answer
    verdict: Verdict
    cells: tuple[str, ...] = ()
    outside: int = 0
    shown: tuple[str, ...] = ()
    against: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""

    def as_json(self) -> dict[str, Json]:
        """Return the judged answer as JSON, with the KEP's text."""
        answer = self.answer
        texts = {"kep": answer.kep, "section": answer.section, "answer": answer.answer}
        return {**Record.as_json(self), **texts, "note": answer.note}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results of a run: `cells` have ended, `unfinished` are the others.

    `directory` has the files of the cells, as the command line named it: the commands begin there.
    """

    plan: MatrixPlan
    directory: Path
    cells: tuple[CellResult, ...]
    unfinished: tuple[PlannedCell, ...]
    answers: tuple[JudgedAnswer, ...]
    version: str
    machine: Mapping[str, Json]
    seconds: float

    @property
    def held(self) -> bool:
        """Return whether every cell ended and held."""
        return not self.unfinished and all(cell.result.held for cell in self.cells)

    def count(self, outcome: Outcome) -> int:
        """Return the number of cells with an outcome."""
        return sum(cell.result.outcome is outcome for cell in self.cells)

    @property
    def summary(self) -> str:
        """Return one line: how many cells passed, failed, and so on."""
        parts = [f"{self.count(Outcome.PASSED)} of {len(self.plan.cells)} cells passed"]
        names = {Outcome.FAILED: "failed", Outcome.ERROR: "could not run", Outcome.SKIPPED: "skipped"}
        parts += [f"{self.count(each)} {name}" for each, name in names.items() if self.count(each)]
        parts += [f"{len(self.unfinished)} not run"] if self.unfinished else []
        simulated = sum(cell.planned.simulated for cell in self.cells)
        parts += [f"{simulated} in simulations"] if simulated else []
        outside = sum(len(cell.planned.cell.unsupported) > 0 for cell in self.cells)
        parts += [f"{outside} outside the version skew policy"] if outside else []
        return ", ".join(parts)

    def as_json(self) -> JsonObject:
        """Return the report as JSON."""
        return {
            "matrix": self.plan.matrix.name,
            "title": self.plan.matrix.title,
            "file": self.plan.matrix.file,
            "selection": "all" if self.plan.full else "pairwise",
            "only": self.plan.only,
            "possible": self.plan.possible,
            "leftOut": [{"name": each.name, "reason": each.reason} for each in self.plan.left_out],
            "version": self.version,
            "commits": sorted({cell.commit for cell in self.cells if cell.commit}),
            "machine": dict(self.machine),
            "seconds": round(self.seconds, 1),
            "summary": self.summary,
            "unfinished": [
                {"name": planned.cell.name, "row": planned.cell.row.name, "kep": planned.cell.row.kep}
                for planned in self.unfinished
            ],
            "rows": [_row(row) for row in self.plan.matrix.rows],
            "cells": [cell.as_json(self.directory) for cell in self.cells],
            "answers": [answer.as_json() for answer in self.answers],
        }


def _row(row: Row) -> JsonObject:
    return {
        "name": row.name,
        "title": row.title,
        "kep": row.kep,
        "section": row.section,
        "cases": [
            {"name": case.name, "when": when_text(case.when) if len(cases) > 1 else "always", "see": case.see}
            for cases in (row.probe.cases, row.cases)
            for case in cases
        ],
    }


def judge(answers: Sequence[Answer], cells: Sequence[CellResult]) -> tuple[JudgedAnswer, ...]:
    """Compare the answers of KEPs with what the cells showed."""
    return tuple(_judge(answer, cells) for answer in answers)


def _judge(answer: Answer, cells: Sequence[CellResult]) -> JudgedAnswer:
    if answer.untested:
        return JudgedAnswer(answer=answer, verdict=Verdict.UNTESTED, reason=answer.untested)
    decided: list[CellResult] = []
    against: dict[str, str] = {}
    shown: dict[str, None] = {}
    for cell in cells:
        planned = cell.planned
        stages = enumerate(planned.cell.stages)
        matching = {number for number, stage in stages if holds(answer.where, stage.setting)}
        if planned.cell.row.name not in answer.rows or not matching:
            continue
        if cell.result.outcome not in (Outcome.PASSED, Outcome.FAILED):
            continue
        decided.append(cell)
        if not cell.passed:
            against[planned.cell.name] = cell.result.reason
            continue
        seen = [each for each in planned.seen if each.stage in matching]
        other = [each for each in seen if _differs(each.case, answer)]
        if other or (answer.shows and not seen):
            against[planned.cell.name] = "; ".join(each.see for each in other) or "nothing was observed"
        elif answer.shows:
            shown.update(dict.fromkeys(each.case for each in seen))
    if not decided:
        return JudgedAnswer(answer=answer, verdict=Verdict.UNTESTED, reason="no cell of the run decides it")
    return JudgedAnswer(
        answer=answer,
        verdict=Verdict.CONTRADICTED if against else Verdict.CONFIRMED,
        cells=tuple(cell.planned.cell.name for cell in decided),
        outside=sum(len(cell.planned.cell.unsupported) > 0 for cell in decided),
        shown=tuple(shown),
        against=against,
    )


def _differs(case: str, answer: Answer) -> bool:
    return case in answer.contradicted_by or (len(answer.shows) > 0 and case not in answer.shows)
