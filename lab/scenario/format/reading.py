"""Read scenario files: YAML documents, checked against the schema and by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nominee.lab.scenario.format import schema
from nominee.lab.scenario.format.documents import Document, InvalidScenarioError, Problem, read_documents
from nominee.lab.scenario.format.model import Scenario
from nominee.lab.scenario.format.parsing import parse
from nominee.lab.scenario.format.variants import expand
from nominee.machinery.wire.values.scalars import Json

_FILE_BYTES_MAX = 1 << 20


def read_file(path: Path) -> list[Scenario]:
    """Return the scenarios of a file, one for each YAML document.

    Raises:
        InvalidScenarioError: the file cannot be read or has mistakes.
    """
    return read_text(text_of(path), str(path), folder=path.parent)


def read_text(text: str, file: str, *, folder: Path | None = None) -> list[Scenario]:
    """Return the scenarios of a text; `folder` is where the files of `base` are looked up.

    Raises:
        InvalidScenarioError: the text has mistakes; all that were found.
    """
    problems: list[Problem] = []
    scenarios: list[Scenario] = []
    documents = read_documents(text, file)
    if not documents:
        raise InvalidScenarioError([Problem(file, 0, "", "the file has no scenario")])
    for document in map(expand, documents):
        found = schema.check(document)
        if found:
            problems += found
            continue
        try:
            scenarios.append(parse(_with_bases(document, folder)))
        except InvalidScenarioError as error:
            problems += error.problems
    names = [scenario.name for scenario in scenarios]
    for name in sorted({name for name in names if names.count(name) > 1}):
        problems.append(Problem(file, 0, "metadata.name", f"{name} is the name of several scenarios"))
    if problems:
        raise InvalidScenarioError(problems)
    return scenarios


def read_files(files: Sequence[Path]) -> list[Scenario]:
    """Return the scenarios of several files.

    Raises:
        InvalidScenarioError: some have mistakes; those of all files.
    """
    scenarios: list[Scenario] = []
    problems: list[Problem] = []
    for path in files:
        try:
            scenarios += read_file(path)
        except InvalidScenarioError as error:
            problems += error.problems
    if problems:
        raise InvalidScenarioError(problems)
    return scenarios


def text_of(path: Path) -> str:
    """Return the text of a file.

    Raises:
        InvalidScenarioError: it cannot be read, or is too large.
    """
    file = str(path)
    try:
        if path.stat().st_size > _FILE_BYTES_MAX:
            raise InvalidScenarioError(
                [Problem(file, 0, "", f"the file has more than {_FILE_BYTES_MAX} bytes")]
            )
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidScenarioError([Problem(file, 0, "", f"cannot be read: {error}")]) from None


def _with_bases(document: Document, folder: Path | None) -> Document:
    """Return the document with the fields of the base files of its cluster and its measures."""
    for key in ("cluster", "measure"):
        document = _with_base(document, folder, key)
    return document


def _with_base(document: Document, folder: Path | None, key: str) -> Document:
    spec: Mapping[str, Json] = document.value["spec"]
    part: Mapping[str, Json] = spec.get(key, {})
    if not isinstance(part.get("base"), str):
        return document
    where = ("spec", key, "base")
    if folder is None:
        raise InvalidScenarioError([document.problem(where, "this scenario is in no file")])
    base_path = folder / part["base"]
    bases = read_documents(text_of(base_path), str(base_path))
    if len(bases) != 1:
        raise InvalidScenarioError([document.problem(where, f"{base_path} is not one YAML document")])
    base = bases[0]
    if found := schema.check(base, definition=key):
        raise InvalidScenarioError(found)
    own = {name: value for name, value in part.items() if name != "base"}
    merged = {**base.value, **own}
    if "components" in base.value and "components" in own:
        merged["components"] = {**base.value["components"], **own["components"]}
    return replace(document, value={**document.value, "spec": {**spec, key: merged}})
