"""The progress of a run on a terminal: a bar with an estimate, and a line for each cell."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from nominee.lab.scenario.result import Outcome
from nominee.lab.skew.pages.report import CellResult

_STYLES = {
    Outcome.PASSED: ("✓", "green"),
    Outcome.FAILED: ("✗", "bold red"),
    Outcome.ERROR: ("!", "bold magenta"),
    Outcome.SKIPPED: ("-", "dim"),
}


class TerminalProgress:
    """Prints each cell when it ends. The bar is drawn where standard error is a terminal only."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        # No thread of its own: this process starts others.
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            auto_refresh=False,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("cells", total=None)

    def __enter__(self) -> TerminalProgress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def began(self, cells: int) -> None:
        """Show how many cells are to run."""
        self._bar.update(self._task, total=cells)
        self._bar.refresh()

    def ended(self, cell: CellResult) -> None:
        """Print a cell's outcome."""
        sign, style = _STYLES[cell.result.outcome]
        self._bar.advance(self._task)
        outside = " (outside the skew policy)" if cell.planned.cell.unsupported else ""
        unit = "simulated s" if cell.planned.simulated else "s"
        reason = f": {cell.result.reason}" if cell.result.reason else ""
        self._console.print(f"[{style}]{sign}[/{style}] ", end="")
        text = f"{cell.planned.cell.name} {cell.result.seconds:.1f} {unit}{outside}{reason}"
        self._console.print(text, markup=False)
        self._bar.refresh()

    def tick(self) -> None:
        """Show the time again."""
        self._bar.refresh()
