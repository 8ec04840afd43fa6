"""Check files before a cluster is started for them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nominee.importing.preparation import NotServed, kind_of
from nominee.importing.sources import SourceError, Sources

_YAML_BYTES_MAX = 4 * 1024 * 1024


def check_files(files: Iterable[Path]) -> None:
    """Check that files can be imported; YAML that would take many seconds is left to the import itself.

    Raises:
        SourceError: a file cannot be read, or the files have nothing that can be imported.
    """
    paths = list(files)
    if not all(map(_is_quick, paths)):
        return
    names = [str(path) for path in paths]
    reasons = []
    for document in Sources(names).documents:
        try:
            kind_of(document)
        except NotServed as error:
            reasons.append(f"{document.get('kind') or 'an object'} {error}")
        else:
            return
    raise SourceError(f"nothing in {', '.join(names)} can be imported: {reasons[0]}")


def _is_quick(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return path.stat().st_size <= _YAML_BYTES_MAX or file.read(64).lstrip()[:1] == b"{"
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None
