"""Read the objects of another cluster from files."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from nominee.explain.files import Manifest
from nominee.machinery.features.gates import NEWEST, OLDEST, Version
from nominee.machinery.wire.files.manifest_lines import line_of
from nominee.machinery.wire.files.manifests import Place, manifest_documents
from nominee.machinery.wire.values.scalars import DecodeError

Document = Manifest
"""An object as JSON."""
Identity = tuple[str, str, str, str]
"""Group, kind, namespace and name."""
_LINES_BYTES_MAX = 4 * 1024 * 1024
"""In a larger file a line is not looked for: that reads the file as YAML."""
_KUBELET_VERSION = re.compile(rb"""kubeletVersion["']?: *["']?v1\.([0-9]+)""")


class SourceError(Exception):
    """A source cannot be read; the text names it."""


class Sources:
    """The objects of some files, in order; `-` is stdin. Of an object that occurs twice the last counts."""

    def __init__(self, names: Iterable[str]) -> None:
        """Read the files.

        Raises:
            SourceError: a file cannot be read, or has something else than objects; or no file has any.
        """
        self._found: dict[Identity, tuple[Document, Place, str]] = {}
        self._texts: dict[str, str] = {}
        for name in names:
            self._texts[name] = text = _read(name)
            try:
                for place, document in manifest_documents(text):
                    self._found[identity(document)] = document, place, name
            except DecodeError as error:
                raise SourceError(f"{name}: {error}") from None
        if not self._found:
            raise SourceError(f"no objects in {', '.join(self._texts)}")

    @property
    def documents(self) -> Sequence[Document]:
        """Return the objects."""
        return [document for document, _, _ in self._found.values()]

    def where(self, document: Document, path: str = "") -> str:
        """Return `FILE:LINE` of a field of one of the objects; of a large file its name alone."""
        _, place, name = self._found[identity(document)]
        text = self._texts[name]
        return name if len(text) > _LINES_BYTES_MAX else f"{name}:{line_of(text, place, path)}"


def _read(name: str) -> str:
    try:
        return (sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()).decode("utf-8")
    except OSError as error:
        raise SourceError(f"{name}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SourceError(f"{name}: {error}") from None


def kubelet_version(files: Iterable[Path]) -> str | None:
    """Return the emulated version that fits most nodes of some files, None where Nominee has no such version.

    The files are searched, not read as YAML: that takes a second for each megabyte.

    Raises:
        SourceError: a file cannot be read.
    """
    minors: Counter[int] = Counter()
    for path in files:
        try:
            minors.update(map(int, _KUBELET_VERSION.findall(path.read_bytes())))
        except OSError as error:
            raise SourceError(f"{path}: {error.strerror}") from None
    if not minors:
        return None
    version = Version(1, minors.most_common(1)[0][0])
    return str(version) if OLDEST <= version <= NEWEST else None


def identity(document: Document) -> Identity:
    """Return group, kind, namespace and name of a document; "" where it lacks one."""
    metadata = metadata_of(document)
    group, slash, _ = str(document.get("apiVersion", "")).partition("/")
    return (
        group if slash else "",
        str(document.get("kind", "")),
        str(metadata.get("namespace") or ""),
        str(metadata.get("name") or ""),
    )


def metadata_of(document: Document) -> Document:
    """Return a document's metadata; empty where it has none."""
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}
