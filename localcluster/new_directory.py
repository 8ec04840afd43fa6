"""Remove a state directory that a refused `nominee up` has made."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_OF_A_START: Final = frozenset({"run", "pki", "up.json"})
"""What `nominee up` writes before the options are accepted."""


def missing_directories(directory: Path) -> tuple[Path, ...]:
    """Return the directory and those above it that do not exist, the lowest first."""
    return tuple(path for path in (directory, *directory.parents) if not path.exists())


@contextmanager
def removed_on_failure(made: Sequence[Path]) -> Iterator[None]:
    """Remove the directories that the caller has made, the lowest first, if the block raises.

    A directory in which there is something else stays, and so do those above it. The caller holds the lock
    of the state directory.
    """
    try:
        yield
    except BaseException:  # of Ctrl-C, too
        if made:
            _remove(made)
        raise


def _remove(made: Sequence[Path]) -> None:
    state, *above = made
    with suppress(OSError):
        if {path.name for path in state.iterdir()} <= _OF_A_START:
            shutil.rmtree(state)
            for directory in above:
                directory.rmdir()
