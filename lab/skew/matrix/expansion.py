"""The cells of a matrix: every combination of a row's factors, or a covering selection of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from math import prod

from nominee.lab.skew.matrix.model import VERSIONED, Cell, Gates, Path, Row, Setting, Stage
from nominee.lab.skew.matrix.pairwise import covering
from nominee.machinery.features.gates import GateError

CELLS_MAX = 20_000
"""Of one row, before the selection."""


class TooManyCellsError(ValueError):
    """A row has more combinations than can be listed."""

    def __init__(self, row: Row, count: int) -> None:
        super().__init__(f"{count} combinations; at most {CELLS_MAX} are possible")
        self.row = row


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A combination of a row that no cluster can have, and why."""

    row: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Expansion:
    """The cells to run, how many there are in all, and the impossible ones."""

    cells: tuple[Cell, ...]
    possible: int
    left_out: tuple[LeftOut, ...]


def expand(rows: Sequence[Row], *, full: bool) -> Expansion:
    """Return the cells of rows: all of them if `full`, else some in which all pairs of values occur.

    Raises:
        TooManyCellsError: a row has more than CELLS_MAX combinations.
    """
    chosen: list[Cell] = []
    possible, left_out = 0, []
    for row in rows:
        cells, refused = _of_row(row)
        possible += len(cells)
        left_out += refused
        # The first of equal ones is chosen: prefer those within the policy.
        cells.sort(key=lambda cell: len(cell.unsupported) > 0)
        indexes = (
            range(len(cells))
            if full or row.full
            else covering([list(cell.values.values()) for cell in cells])
        )
        selected = [cells[index] for index in indexes]
        chosen += sorted(selected, key=lambda cell: list(cell.values.values()))
    return Expansion(tuple(chosen), possible, tuple(left_out))


def _of_row(row: Row) -> tuple[list[Cell], list[LeftOut]]:
    paths = {path.name: path for path in row.paths}
    factors: dict[str, Sequence[str]] = dict(row.versions)
    gates = {component: {gates_text(each): each for each in own} for component, own in row.gates.items()}
    factors |= {f"{component} gates": list(own) for component, own in gates.items()}
    factors |= {"path": list(paths)} if paths else {}
    factors |= {"after": row.after} if len(row.after) > 1 else {}
    count = prod(len(values) for values in factors.values())
    if count > CELLS_MAX:
        raise TooManyCellsError(row, count)
    base = _base(row)
    cells, left_out = [], []
    for values in product(*factors.values()):
        named = dict(zip(factors, values, strict=True))
        chosen = {component: own[named[f"{component} gates"]] for component, own in gates.items()}
        versions = {component: named[component] for component in row.versions}
        programs = {name: row.programs[each] for name, each in versions.items() if each in row.programs}
        versions |= {name: program.version for name, program in programs.items()}
        own = {name: program.gates for name, program in programs.items()}
        setting = Setting(
            versions={**base.versions, **versions},
            gates=_merged(_merged(base.gates, own), chosen),
            programs=programs,
        )
        try:
            stages = _stages(setting, paths.get(named.get("path", "")))
            _check(stages)
        except GateError as error:
            left_out.append(
                LeftOut(row.name, f"{row.name} {' '.join(f'{k}={v}' for k, v in named.items())}", str(error))
            )
            continue
        after = named.get("after", row.after[0] if row.after else "")
        cells.append(Cell(row=row, values=named, stages=stages, after=after))
    return cells, left_out


def gates_text(gates: Gates) -> str:
    """Return `A=true,B=false`, or `default`."""
    return ",".join(f"{name}={str(value).lower()}" for name, value in sorted(gates.items())) or "default"


def _check(stages: Sequence[Stage]) -> None:
    for stage in stages:
        for component in (*VERSIONED, *stage.setting.processes):
            stage.setting.effective(component)


def _stages(base: Setting, path: Path | None) -> tuple[Stage, ...]:
    """Return the stages of a path whose other components are as in `base`."""
    if path is None:
        return (Stage(setting=base),)
    setting = _at(base, base, path.order, path.points[0])
    # Others stay at the lowest version, if no factor gives them one: none is newer than the API server.
    lowest = str(min(point.version(component) for point in path.points for component in path.order))
    setting = replace(setting, versions={**dict.fromkeys(VERSIONED, lowest), **setting.versions})
    stages = [Stage(setting=setting)]
    for before, after in zip(path.points, path.points[1:], strict=False):
        order = path.order
        if any(after.version(component) < before.version(component) for component in order):
            order = order[::-1]
        for component in order:
            setting = _at(base, setting, (component,), after)
            stages.append(Stage(setting=setting, restarted=component))
    return tuple(stages)


def _at(base: Setting, before: Setting, components: Sequence[str], point: Setting) -> Setting:
    """Return the setting `before` after these components were restarted at a point of a path."""
    versions = {each: str(point.version(each)) for each in components}
    gates = {each: {**base.gates.get(each, {}), **point.gates.get(each, {})} for each in components}
    return replace(before, versions={**before.versions, **versions}, gates={**before.gates, **gates})


def _merged(base: Mapping[str, Gates], more: Mapping[str, Gates]) -> Mapping[str, Gates]:
    return {name: {**base.get(name, {}), **more.get(name, {})} for name in {**base, **more}}


def paths_of(path: Path, *, any_order: bool) -> list[Path]:
    """Return the path, or for any order one path for each permutation of its components."""
    if not any_order:
        return [path]
    return [
        replace(path, name=f"{path.name}: {', '.join(order)}", order=order)
        for order in permutations(path.order)
    ]


def _base(row: Row) -> Setting:
    """Return the versions and gates of the row's scenario."""
    cluster = row.document["spec"].get("cluster", {})
    own = cluster.get("components", {})
    shared = cluster.get("featureGates", {})
    versions = {name: each["emulatedVersion"] for name, each in own.items() if "emulatedVersion" in each}
    if "emulatedVersion" in cluster:
        versions = {"apiserver": cluster["emulatedVersion"]} | versions
    gates = {name: {**shared, **own.get(name, {}).get("featureGates", {})} for name in VERSIONED}
    return Setting(versions=versions, gates={name: each for name, each in gates.items() if each})
