"""The plan of a run of a matrix: its cells, each with a scenario that was checked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256

from nominee.lab.scenario.format.documents import InvalidScenarioError, Problem
from nominee.lab.scenario.format.reading import read_text
from nominee.lab.scenario.format.replacing import words_of
from nominee.lab.skew.matrix.composition import CompositionError, Seen, compose, seen, slug
from nominee.lab.skew.matrix.expansion import Expansion, LeftOut, TooManyCellsError, expand
from nominee.lab.skew.matrix.model import Cell, Matrix, Row, Simulate
from nominee.machinery.wire.files.manifests import dump_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCell:
    """A cell to run. `id` names its directory; `text` is its scenario file.

    `simulated`: a simulation plays it, in place of real processes.
    """

    id: str
    cell: Cell
    seen: tuple[Seen, ...]
    text: str
    timeout_seconds: float
    simulated: bool = False

    @property
    def digest(self) -> str:
        """Return a digest of the scenario and its programs: an earlier result of others is not used again."""
        return sha256("\0".join([self.text, *words_of(self.cell.programs)]).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixPlan:
    """The cells of a run. `possible` counts those of the whole matrix, `left_out` cannot exist."""

    matrix: Matrix
    full: bool
    only: str
    cells: tuple[PlannedCell, ...]
    possible: int
    left_out: tuple[LeftOut, ...]


def plan(matrix: Matrix, *, full: bool, only: str = "", simulate: Simulate | None = None) -> MatrixPlan:
    """Return the cells of a matrix whose name matches the pattern `only`.

    The pattern is one of a shell; one without `*` and `?` matches names that contain it. `simulate` takes the
    place of what the rows say.

    Raises:
        InvalidScenarioError: a cell's scenario has mistakes, or a row has no possible cell.
    """
    try:
        expansion = expand(matrix.rows, full=full)
    except TooManyCellsError as error:
        raise InvalidScenarioError([_problem(matrix, error.row, str(error))]) from None
    with_cells = {cell.row.name for cell in expansion.cells}
    if empty := [
        _problem(matrix, row, f"no combination is possible: {_first_reason(row, expansion)}")
        for row in matrix.rows
        if row.name not in with_cells
    ]:
        raise InvalidScenarioError(empty)
    chosen = [cell for cell in expansion.cells if _matches(cell.name, only)]
    cells = tuple(_planned(matrix, chosen, _simulated(expansion.cells, simulate)))
    return MatrixPlan(
        matrix=matrix,
        full=full,
        only=only,
        cells=cells,
        possible=expansion.possible,
        left_out=expansion.left_out,
    )


def _problem(matrix: Matrix, row: Row, message: str) -> Problem:
    return Problem(matrix.file, row.line, f"row {row.name}", message)


def _first_reason(row: Row, expansion: Expansion) -> str:
    return next(left.reason for left in expansion.left_out if left.row == row.name)


def _matches(name: str, pattern: str) -> bool:
    if not any(sign in pattern for sign in "*?"):
        return pattern in name
    return fnmatchcase(name, pattern)


def _simulated(cells: Sequence[Cell], simulate: Simulate | None) -> frozenset[str]:
    """Return the names of the cells to simulate, where that is possible. It does not depend on `only`."""
    names: set[str] = set()
    shown: dict[str, frozenset[str]] = {}
    for cell in cells:
        how = simulate or cell.row.simulate
        before = shown.get(cell.row.name)
        cases = frozenset(each.case for each in seen(cell))
        if how is Simulate.ALL or (how is Simulate.REPEATED and before is not None and cases <= before):
            names.add(cell.name)
        shown[cell.row.name] = cases | (before or frozenset())
    return frozenset(names)


def _planned(matrix: Matrix, cells: Sequence[Cell], simulated: Collection[str]) -> Iterator[PlannedCell]:
    problems: dict[str, Problem] = {}
    ids: dict[str, int] = {}
    for cell in cells:
        name = slug(cell.name)
        ids[name] = ids.get(name, 0) + 1
        try:
            document = compose(cell)
            text = dump_yaml(document, sort_keys=False, width=100)
            (scenario,) = read_text(text, matrix.file)
        except CompositionError as error:
            problems[str(error)] = _problem(matrix, cell.row, str(error))
            continue
        except InvalidScenarioError as error:
            for each in error.problems:
                message = f"{each.field}: {each.message} (cell {cell.name})"
                key = f"{cell.row.name} {each.message}"
                problems.setdefault(key, _problem(matrix, cell.row, message))
            continue
        yield PlannedCell(
            id=name if ids[name] == 1 else f"{name}.{ids[name]}",
            cell=cell,
            seen=seen(cell),
            text=text,
            timeout_seconds=scenario.timeout_seconds,
            simulated=cell.name in simulated and not (scenario.cluster.not_simulated or cell.programs),
        )
    if problems:
        raise InvalidScenarioError(list(problems.values()))
