"""The state file of the cloud. It is complete at any moment, so that no instance is lost by kill -9."""

from __future__ import annotations

import json
from pathlib import Path

from nominee.autoscaler.cloud.state import CloudState
from nominee.machinery.runtime import host


class StateFileError(Exception):
    """The file cannot be read; the text has its path and the remedy."""


class StateFile:
    """`D/cloud/state.json`."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "cloud" / "state.json"

    def load(self, state: CloudState) -> bool:
        """Restore the state from the file; report whether there is a file.

        Raises:
            StateFileError: the file has another form.
        """
        try:
            text = host.current().read(self.path)
        except FileNotFoundError:
            return False
        try:
            state.restore(json.loads(text))
        except (ValueError, KeyError, TypeError) as error:
            raise StateFileError(f"{self.path}: {error!r}; remove it to start without instances") from None
        return True

    def save(self, state: CloudState) -> None:
        """Write the file. A reader sees the old or the new one, also after a power failure."""
        host.current().write(self.path, json.dumps(state.to_document()).encode(), durable=True)
