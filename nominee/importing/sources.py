"""Read the objects of another cluster from files."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from nominee.explain.files import Manifest
from nominee.machinery.features.gates import NEWEST, OLDEST, Version
from nominee.machinery.wire.files.manifests import manifest_documents
from nominee.machinery.wire.values.scalars import DecodeError

Document = Manifest
"""An object as JSON."""
_KUBELET_VERSION = re.compile(rb"""kubeletVersion["']?: *["']?v1\.([0-9]+)""")


class SourceError(Exception):
    """A source cannot be read; the text names it."""


def read_files(names: Iterable[str]) -> Sequence[Document]:
    """Return the objects of some files, in order; `-` is stdin. An object that occurs twice counts once.

    Raises:
        SourceError: a file cannot be read, or has something else than objects.
    """
    found: dict[tuple[str, str, str, str], Document] = {}
    for name in names:
        try:
            text = (sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()).decode("utf-8")
            for _, document in manifest_documents(text):
                found[identity(document)] = document
        except OSError as error:
            raise SourceError(f"{name}: {error.strerror}") from None
        except (DecodeError, UnicodeDecodeError) as error:
            raise SourceError(f"{name}: {error}") from None
    return list(found.values())


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


def identity(document: Document) -> tuple[str, str, str, str]:
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
