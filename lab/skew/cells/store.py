"""The directory of a run: DIR/cells/ID of each cell, and the reports."""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from pathlib import Path

from nominee.lab.scenario.result import ScenarioResult
from nominee.lab.skew.cells.cell_run import RESULT
from nominee.lab.skew.matrix.planning import PlannedCell
from nominee.lab.skew.pages.report import CellResult
from nominee.machinery.process.file_lock import HeldError, acquire, holder


class StoreError(RuntimeError):
    """The directory cannot be used; the message has the reason and the remedy."""


_LOCK = ".lock"


def _used_by(directory: Path, pid: int) -> StoreError:
    by = f" (pid {pid})" if pid else ""
    return StoreError(
        f"another `nominee skew run`{by} uses {directory}; wait for its end, or give another directory"
    )


class Store:
    """The files of a run. One process at a time writes them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cells = directory / "cells"
        self._lock: int | None = None

    def open(self, *, resume: bool) -> None:
        """Create the directory, or continue in one that has results.

        Raises:
            StoreError: it has results and `resume` is off, it has other files, or another process uses it.
        """
        lock = self.directory / _LOCK
        if self._lock is None and (pid := holder(lock)) is not None:
            raise _used_by(self.directory, pid)
        try:
            found = sorted(self.directory.iterdir()) if self.directory.is_dir() else []
            others = [path for path in found if path != lock]
            if others and self.cells not in others:
                raise StoreError(
                    f"{self.directory} has files that are not of a matrix; give an empty directory"
                )
            if others and any(self.cells.iterdir()) and not resume:
                raise StoreError(
                    f"{self.directory} has results; --resume runs the missing cells, "
                    "or give another directory"
                )
            self.cells.mkdir(parents=True, exist_ok=True)
            if self._lock is None:
                self._lock = acquire(lock)
        except HeldError as error:
            raise _used_by(self.directory, error.pid) from None
        except OSError as error:
            raise StoreError(f"{self.directory} cannot be used: {error}") from None

    def close(self) -> None:
        """Let another process use the directory."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def result(self, planned: PlannedCell) -> CellResult | None:
        """Return the result of a cell played so, with this scenario and version of Nominee, or None."""
        try:
            document = json.loads((self.cells / planned.id / RESULT).read_text(encoding="utf-8"))
            played = (document["digest"], document["version"], document["simulated"])
            if played != (planned.digest, version("nominee"), planned.simulated):
                return None
            result = ScenarioResult.from_json(document["result"])
            return CellResult(planned=planned, result=result, commit=str(document["commit"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def folder(self, planned: PlannedCell) -> Path:
        """Return the directory of a cell."""
        return self.cells / planned.id
