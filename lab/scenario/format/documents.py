"""YAML documents with the line of every field, for messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from nominee.machinery.wire.files.manifests import JSONTypesLoader
from nominee.machinery.wire.values.scalars import Json

Path = tuple[str | int, ...]
"""Keys and indexes from the root of a document to a value."""

_LEVELS_MAX = 100
_VALUES_MAX = 200_000
"""Of a document; a value counts for each alias through which it is reached."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in a file; `line` counts from 1, `field` is a path such as `spec.steps[2].wait`."""

    file: str
    line: int
    field: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.line else f"{self.file}: "
        return f"{where}{self.field}: {self.message}" if self.field else f"{where}{self.message}"


class InvalidScenarioError(ValueError):
    """A file that is no scenario; the message has one line for each mistake."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document as JSON, and the line of each of its values.

    `origins`: for each step of a scenario the index of the step in the file that it is a copy of; empty if
    there are no copies.
    """

    file: str
    value: Json
    lines: Mapping[Path, int]
    origins: tuple[int, ...] = ()

    def line(self, path: Path) -> int:
        """Return the line of a value, or of the nearest one around it that has a line."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path, 0)

    def problem(self, path: Path, message: str) -> Problem:
        """Return a mistake at a value."""
        return Problem(self.file, self.line(path), field_text(path), message)


def field_text(path: Path) -> str:
    """Return a path as text: `spec.steps[2].wait`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


class _LimitError(ValueError):
    """A document is too deep or too large at a line."""

    def __init__(self, message: str, at: yaml.Node | yaml.Event) -> None:
        super().__init__(message)
        self.line = at.start_mark.line + 1 if at.start_mark is not None else 0


def read_documents(text: str, file: str) -> list[Document]:
    """Return the documents of a YAML stream.

    Raises:
        InvalidScenarioError: the text is not YAML, is too deep or large, or a mapping has a key twice.
    """
    documents: list[Document] = []
    problems: list[Problem] = []
    loader = JSONTypesLoader(text)
    try:
        _check_levels(text)
        while loader.check_node():
            node = loader.get_node()
            lines: dict[Path, int] = {}
            problems += [
                Problem(file, line, field_text(path), "the field is given twice")
                for path, line in _duplicates(node, (), lines)
            ]
            documents.append(Document(file, loader.construct_document(node), lines))
    except _LimitError as error:
        raise InvalidScenarioError([Problem(file, error.line, "", str(error))]) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 0
        raise InvalidScenarioError(
            [Problem(file, line, "", f"not valid YAML: {error.problem or error.context}")]
        ) from None
    except yaml.YAMLError as error:
        raise InvalidScenarioError([Problem(file, 0, "", f"not valid YAML: {error}")]) from None
    finally:
        loader.dispose()
    if problems:
        raise InvalidScenarioError(problems)
    return [document for document in documents if document.value is not None]


def _check_levels(text: str) -> None:
    """Refuse text with too many levels before it is composed, which recurses in C.

    Raises:
        _LimitError: it has.
        yaml.YAMLError: it is not YAML.
    """
    level = 0
    for event in yaml.parse(text, Loader=JSONTypesLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            level += 1
            if level > _LEVELS_MAX:
                raise _too_deep(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            level -= 1


def _too_deep(at: yaml.Node | yaml.Event) -> _LimitError:
    return _LimitError(f"more than {_LEVELS_MAX} levels", at)


def _duplicates(node: yaml.Node, path: Path, lines: dict[Path, int]) -> Iterator[tuple[Path, int]]:
    """Record the lines of a node's values; yield keys that a mapping has twice.

    Raises:
        _LimitError: aliases make the document too deep or too large.
    """
    if len(path) > _LEVELS_MAX:
        raise _too_deep(node)
    if len(lines) > _VALUES_MAX:
        raise _LimitError(f"more than {_VALUES_MAX} values", node)
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            below = (*path, str(key.value))
            line = key.start_mark.line + 1
            if key.value in seen:
                yield below, line
            seen.add(key.value)
            lines[below] = line
            yield from _duplicates(value, below, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _duplicates(value, (*path, index), lines)
