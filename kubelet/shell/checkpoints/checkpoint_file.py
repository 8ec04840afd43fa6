"""The file of a node's checkpoint.

A save writes a new file beside the old one, syncs it, renames it over the old one and syncs the directory: a
reader sees the old or the new state, whenever the writer dies.
"""

from __future__ import annotations

from pathlib import Path

from nominee.kubelet.checkpoint import Checkpoint, CorruptCheckpointError, decode, encode
from nominee.machinery.runtime import host

_SUFFIX = ".json"


class CheckpointFile:
    """The file of one node. Blocking calls: run them in a thread."""

    def __init__(self, directory: Path, node: str) -> None:
        self.path = directory / f"{node}{_SUFFIX}"
        self.node = node

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the file; OSError when the disk refuses, and then the old state is still there."""
        self.write(encode(checkpoint))

    def write(self, data: bytes) -> None:
        """Replace the file by the result of `encode`; OSError as in `save`."""
        host.current().write(self.path, data, durable=True)

    def load(self) -> Checkpoint | None:
        """Return the last saved state, None when there is no file.

        Raises:
            CorruptCheckpointError: the file cannot be trusted; the text names it.
        """
        try:
            data = host.current().read(self.path)
        except FileNotFoundError:
            return None
        try:
            checkpoint = decode(data)
        except CorruptCheckpointError as error:
            raise CorruptCheckpointError(f"checkpoint {self.path}: {error}") from None
        if checkpoint.node != self.node:
            raise CorruptCheckpointError(f"checkpoint {self.path}: is of node {checkpoint.node}")
        return checkpoint

    def remove(self) -> None:
        """Remove the file: the node is gone for good."""
        host.current().remove(self.path)
