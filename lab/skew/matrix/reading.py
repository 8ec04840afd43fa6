"""Read a matrix file: YAML, checked against the schema, by name, and with every cell's scenario."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from nominee.lab.scenario.fields import names
from nominee.lab.scenario.format import model as scenarios
from nominee.lab.scenario.format import reading
from nominee.lab.scenario.format.documents import Document, InvalidScenarioError, Problem, read_documents
from nominee.lab.scenario.format.documents import Path as FieldPath
from nominee.lab.scenario.format.schema import check_with
from nominee.lab.skew.matrix.expansion import paths_of
from nominee.lab.skew.matrix.model import (
    Answer,
    Case,
    Gates,
    JsonObject,
    Matrix,
    Probe,
    Program,
    Row,
    Setting,
    Simulate,
    component_of,
)
from nominee.lab.skew.matrix.model import Path as UpgradePath
from nominee.machinery.wire.values.scalars import Json

SCHEMA_FILE: Final = Path(__file__).with_name("skew.v1alpha1.schema.json")
_OF_SCENARIO = ("cluster", "variants", "steps", "measure", "timeoutSeconds")
"""The fields of a scenario that a row may have, instead of its file."""


@cache
def schema() -> Mapping[str, Json]:
    """Return the JSON Schema of a matrix."""
    document: Mapping[str, Json] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return document


def read_matrix(path: Path) -> Matrix:
    """Return the matrix of a file.

    Raises:
        InvalidScenarioError: the file, or a scenario that it names, cannot be read or has mistakes.
    """
    file = str(path)
    documents = read_documents(reading.text_of(path), file)
    if len(documents) != 1:
        raise InvalidScenarioError([Problem(file, 0, "", "the file is not one YAML document")])
    if found := check_with(schema(), documents[0]):
        raise InvalidScenarioError(found)
    reader = _Reader(documents[0], path.parent)
    matrix = reader.matrix()
    if reader.problems:
        raise InvalidScenarioError(sorted(set(reader.problems), key=lambda problem: problem.line))
    return matrix


class _Reader:
    """Makes a matrix of a document that the schema accepts."""

    def __init__(self, document: Document, folder: Path) -> None:
        self._document, self._folder = document, folder
        self._simulate = document.value["spec"].get("simulate", Simulate.NONE.value)
        self._programs: dict[str, Program] = {}
        self.problems: list[Problem] = []

    def _fault(self, path: FieldPath, message: str) -> None:
        self.problems.append(self._document.problem(path, message))

    def matrix(self) -> Matrix:
        """Return the matrix; mistakes are in `problems`."""
        value = self._document.value
        for index, each in enumerate(value["spec"].get("programs", ())):
            program = self._program(("spec", "programs", index), each)
            self._programs[program.name] = program
        rows = [self._row(("spec", "rows", i), row) for i, row in enumerate(value["spec"]["rows"])]
        known = [row.name for row in rows]
        for index, name in enumerate(known):
            if name in known[:index]:
                self._fault(("spec", "rows", index, "name"), f"{name} is the name of several rows")
        by_name = {row.name: row for row in rows}
        answers = [
            self._answer(("spec", "answers", i), each, by_name)
            for i, each in enumerate(value["spec"].get("answers", ()))
        ]
        return Matrix(
            name=value["metadata"]["name"],
            title=value["metadata"].get("title", ""),
            file=self._document.file,
            rows=tuple(rows),
            answers=tuple(answers),
        )

    # Rows

    def _row(self, path: FieldPath, value: Mapping[str, Json]) -> Row:
        document = self._scenario(path, value)
        versions = {name: tuple(own) for name, own in value.get("versions", {}).items()}
        for component, own in versions.items():
            for index, version in enumerate(own):
                self._value((*path, "versions", component, index), component, version)
        gates = {name: tuple(own) for name, own in value.get("gates", {}).items()}
        for component, sets in gates.items():
            for index, each in enumerate(sets):
                self._gates((*path, "gates", component, index), component, each)
        self._check_components(path, value, document)
        paths: list[UpgradePath] = []
        for index, each in enumerate(value.get("paths", ())):
            paths += self._paths((*path, "paths", index), each)
        self._check_paths(path, value, paths)
        probe, cases = value.get("probe", {}), value.get("cases", ())
        self._check_cases((*path, "probe", "cases"), probe.get("cases", ()))
        self._check_cases((*path, "cases"), cases)
        return Row(
            name=value["name"],
            title=value.get("title", "") or document["metadata"].get("title", ""),
            kep=value.get("kep", 0),
            section=value.get("section", "") or document["metadata"].get("section", ""),
            line=self._document.line(path),
            document=document,
            versions=versions,
            programs=self._programs,
            gates=gates,
            paths=tuple(paths),
            after=tuple(value.get("after", ())),
            probe=Probe.from_json(probe),
            cases=tuple(map(Case.from_json, cases)),
            full=value.get("full", False),
            simulate=Simulate(value.get("simulate", self._simulate)),
        )

    def _program(self, path: FieldPath, value: Mapping[str, Json]) -> Program:
        self._version((*path, "version"), value["version"])
        self._gates((*path, "gates"), value["component"], value.get("gates", {}))
        if value["name"] in self._programs:
            self._fault((*path, "name"), f"{value['name']} is the name of several programs")
        return Program.from_json(value)

    def _value(self, path: FieldPath, component: str, text: str) -> None:
        """Check a value of `versions`: a version, or the name of a program in the component's place."""
        program = self._programs.get(text)
        if program is None and not text.startswith("1."):
            known = ", ".join(self._programs) or "none (spec.programs)"
            self._fault(path, f"there is no program {text!r}; known are {known}")
        elif program is None:
            self._version(path, text)
        elif program.component != component:
            self._fault(path, f"{text} is a program in the place of {program.component}")

    def _check_paths(self, path: FieldPath, value: Mapping[str, Json], paths: Sequence[UpgradePath]) -> None:
        named = [each.name for each in paths]
        if len(set(named)) != len(named):
            self._fault((*path, "paths"), "two paths have the same name")
        taken = {component for each in paths for component in each.order}
        for component in taken & set(value.get("versions", {})):
            self._fault((*path, "versions", component), f"the version of {component} comes from the paths")
        if "after" in value and not paths:
            self._fault((*path, "after"), "the row has no paths")

    def _check_components(
        self, path: FieldPath, value: Mapping[str, Json], document: Mapping[str, Json]
    ) -> None:
        """Check that the row's cluster has the components that vary, and that they are ours."""
        cluster = document["spec"].get("cluster", {})
        named = [(*path, key, name) for key in ("versions", "gates") for name in value.get(key, {})]
        for index, each in enumerate(value.get("paths", ())):
            order = (*path, "paths", index, "order")
            named += [(*order, position) for position, _ in enumerate(each["order"])]
        for where in named:
            name = where[-1] if isinstance(where[-1], str) else value["paths"][where[-3]]["order"][where[-1]]
            component = component_of(name)
            if component in cluster.get("without", ()):
                self._fault(where, f"the row's cluster is without {component}")
            if "command" in cluster.get("components", {}).get(component, {}):
                self._fault(
                    where, f"{component} is another program here, which no version or gate is given to"
                )

    def _scenario(self, path: FieldPath, value: Mapping[str, Json]) -> JsonObject:
        empty: JsonObject = {"metadata": {"name": value["name"]}, "spec": {"steps": []}}
        own = [key for key in _OF_SCENARIO if key in value]
        if ("scenario" in value) == bool(own):
            self._fault(path, "give scenario (a file), or cluster and steps")
            return empty
        if own:
            spec = {key: value[key] for key in own} | {"steps": value.get("steps", [])}
            return {
                "apiVersion": scenarios.API_VERSION,
                "kind": scenarios.KIND,
                "metadata": {"name": value["name"]},
                "spec": spec,
            }
        file, _, name = value["scenario"].partition("#")
        where = (*path, "scenario")
        try:
            found = reading.read_file(self._folder / file)
        except InvalidScenarioError as error:
            for problem in error.problems:
                if problem.line:
                    self.problems.append(problem)
                else:
                    self._fault(where, str(problem))
            return empty
        chosen = [each for each in found if name in ("", each.name)]
        if len(chosen) != 1:
            known = ", ".join(f"{file}#{each.name}" for each in found)
            self._fault(where, f"{value['scenario']} is not one scenario; possible are {known}")
            return empty
        return chosen[0].document

    def _paths(self, path: FieldPath, value: Mapping[str, Json]) -> list[UpgradePath]:
        points = []
        for index, point in enumerate(value["points"]):
            where = (*path, "points", index)
            self._version((*where, "version"), point["version"])
            for component, gates in point.get("gates", {}).items():
                self._gates((*where, "gates", component), component, gates)
                if component not in value["order"]:
                    self._fault((*where, "gates", component), f"{component} is not in the path's order")
            versions = dict.fromkeys(value["order"], point["version"])
            points.append(Setting(versions=versions, gates=point.get("gates", {})))
        found = UpgradePath(name=value["name"], order=tuple(value["order"]), points=tuple(points))
        return paths_of(found, any_order=value.get("anyOrder", False))

    def _check_cases(self, path: FieldPath, values: Sequence[Mapping[str, Json]]) -> None:
        named = [value["name"] for value in values]
        last = next((index for index, value in enumerate(values) if not value.get("when")), len(values))
        for index, name in enumerate(named):
            if name in named[:index]:
                self._fault((*path, index, "name"), f"{name} is the name of several cases")
            if index > last:
                self._fault((*path, index), f"never applies: the case {named[last]} has no condition")
            self._check_when((*path, index, "when"), values[index].get("when", {}))

    def _check_when(self, path: FieldPath, value: Mapping[str, Mapping[str, Json]]) -> None:
        for component, own in value.items():
            self._gates((*path, component, "gates"), component, own.get("gates", {}))
            for key in ("atLeast", "below"):
                self._version((*path, component, key), own.get(key, ""))

    # Names

    def _version(self, path: FieldPath, text: str) -> None:
        try:
            names.version(text)
        except names.NameProblem as error:
            self._fault(path, str(error))

    def _gates(self, path: FieldPath, component: str, gates: Gates) -> None:
        for name in gates:
            try:
                names.gate_of(component, name)
            except names.NameProblem as error:
                self._fault((*path, name), str(error))

    # Answers

    def _answer(self, path: FieldPath, value: Mapping[str, Json], rows: Mapping[str, Row]) -> Answer:
        if ("untested" in value) == ("rows" in value):
            self._fault(path, "give rows, or the reason why it is untested")
        keps = sorted({row.kep for row in rows.values()} - {0})
        if value["kep"] not in keps:
            known = ", ".join(map(str, keps)) or "none"
            self._fault(
                (*path, "kep"), f"no row has kep: {value['kep']}, so that it has no page; known are {known}"
            )
        for index, name in enumerate(value.get("rows", ())):
            if name not in rows:
                known = ", ".join(rows)
                self._fault((*path, "rows", index), f"there is no row {name!r}; known are {known}")
        chosen = [rows[name] for name in value.get("rows", ()) if name in rows]
        cases = {case.name for row in chosen for case in (*row.cases, *row.probe.cases)}
        known = ", ".join(sorted(cases)) or "none"
        for key in ("shows", "contradictedBy"):
            for index, name in enumerate(value.get(key, ())):
                if name not in cases:
                    self._fault((*path, key, index), f"no case {name!r} in these rows; known are {known}")
        self._check_when((*path, "where"), value.get("where", {}))
        return Answer.from_json(value)
