"""The directory of a run: DIR/cells/ID of each cell, and the reports."""

from __future__ import annotations

import json
from pathlib import Path

from nominee.scenario.result import ScenarioResult
from nominee.skew import report as reports
from nominee.skew.cell_run import RESULT
from nominee.skew.planning import PlannedCell
from nominee.skew.report import CellResult


class StoreError(RuntimeError):
    """The directory cannot be used; the message has the reason and the remedy."""


class Store:
    """The files of a run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cells = directory / "cells"

    def open(self, *, resume: bool) -> None:
        """Create the directory, or continue in one that has results.

        Raises:
            StoreError: it has results and `resume` is off, or it has other files.
        """
        others = sorted(self.directory.iterdir()) if self.directory.is_dir() else []
        ours = self.cells in others or self.directory / reports.NAME in others
        if others and not ours:
            raise StoreError(f"{self.directory} has files that are not of a matrix; give an empty directory")
        if ours and not resume:
            raise StoreError(
                f"{self.directory} has results; --resume runs the missing cells, or give another directory"
            )
        try:
            self.cells.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(str(error)) from None

    def result(self, planned: PlannedCell) -> CellResult | None:
        """Return the result of a cell that has ended with this scenario, or None."""
        try:
            document = json.loads((self.cells / planned.id / RESULT).read_text(encoding="utf-8"))
            if document["digest"] != planned.digest:
                return None
            return CellResult(planned=planned, result=ScenarioResult.from_json(document["result"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def folder(self, planned: PlannedCell) -> Path:
        """Return the directory of a cell."""
        return self.cells / planned.id
