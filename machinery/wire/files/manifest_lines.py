"""Find the line of a field in a stream of manifests, for messages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import yaml

from nominee.machinery.wire.files.manifests import JSONTypesLoader, Place


def line_of(text: str, place: Place, path: str = "") -> int:
    """Return the line, from 1, of a field of an object; or of the nearest field around it that is there.

    `path` is that of a DecodeError, as `spec.containers[0].name`; "" is the object itself.
    """
    documents = yaml.compose_all(text, Loader=JSONTypesLoader)
    node = next(islice(documents, place.document - 1, None))
    line: int = node.start_mark.line + 1
    rest = f"{place.path}.{path}" if path else place.path
    while rest:
        # A key may have dots: of `labels`, the key `app` is not that of `labels.app.kubernetes.io/name`.
        found = [each for each in _children(node) if _begins(rest, each[0])]
        if not found:
            break
        part, line, node = max(found, key=lambda each: len(each[0]))
        rest = rest[len(part) :]
    return line


def _children(node: yaml.Node) -> Iterator[tuple[str, int, yaml.Node]]:
    """Yield the part of the path, the line and the value of each field or item."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield f".{key.value}", key.start_mark.line + 1, value
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield f"[{index}]", value.start_mark.line + 1, value


def _begins(path: str, part: str) -> bool:
    return path.startswith(part) and path[len(part) :][:1] in ("", ".", "[")
