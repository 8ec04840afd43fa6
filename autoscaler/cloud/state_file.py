"""The cloud's memory: a small file that is whole at every moment, so that kill -9 loses no machine."""

from __future__ import annotations

import json
import os
from pathlib import Path

from autoscaler.cloud.state import CloudState


class StateFileError(Exception):
    """The file is there and cannot be read; the text says where, and what to do."""


class StateFile:
    """`D/cloud/state.json`."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "cloud" / "state.json"

    def load(self, state: CloudState) -> bool:
        """Restores the state; whether there was a file. StateFileError for one that makes no sense."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return False
        try:
            state.restore(json.loads(text))
        except (ValueError, KeyError, TypeError) as error:
            raise StateFileError(f"{self.path}: {error!r}; remove it to begin with no machines") from None
        return True

    def save(self, state: CloudState) -> None:
        """Readers see the old file or the new one, also after a power cut."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".tmp")
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(state.to_document(), file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)
