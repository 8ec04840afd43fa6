"""What a node keeps on disk over the death of its kubelet process: allocations, and the containers that run.

One file a node, JSON: `{"checksum": "sha256:...", "data": {...}}`. A save writes a new file beside the old
one, syncs it, renames it over the old one and syncs the directory: a reader sees the old or the new state,
whenever the writer dies. KEP-1287, "Kubelet Restart Tolerance".
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubelet import runtime
from kubelet.pod_resources import PodResources
from kubelet.runtime import PodSandbox

VERSION = 1
_SUFFIX = ".json"


class CorruptCheckpointError(Exception):
    """The file is there and cannot be trusted; the text says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A node's state by pod uid."""

    node: str
    allocations: dict[str, PodResources] = field(default_factory=dict)
    sandboxes: dict[str, PodSandbox] = field(default_factory=dict)


class CheckpointFile:
    """The file of one node. Blocking calls: run them in a thread."""

    def __init__(self, directory: Path, node: str) -> None:
        self.path = directory / f"{node}{_SUFFIX}"
        self.node = node

    def save(self, checkpoint: Checkpoint) -> None:
        """Replaces the file; OSError when the disk refuses (the old state is then still there)."""
        self.write(encode(checkpoint))

    def write(self, data: bytes) -> None:
        """As `save`, of what `encode` made."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".new")
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.path)
        _sync_directory(self.path.parent)

    def load(self) -> Checkpoint | None:
        """The last saved state, None when there is none; CorruptCheckpointError."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            checkpoint = decode(data)
        except CorruptCheckpointError as error:
            raise CorruptCheckpointError(f"checkpoint {self.path}: {error}") from None
        if checkpoint.node != self.node:
            raise CorruptCheckpointError(f"checkpoint {self.path}: is of node {checkpoint.node}")
        return checkpoint

    def set_aside(self) -> Path:
        """Moves a corrupt file out of the way, for a person to look at; the newest one is kept."""
        aside = self.path.with_suffix(".corrupt")
        os.replace(self.path, aside)
        return aside

    def remove(self) -> None:
        """The node is gone for good."""
        with suppress(FileNotFoundError):
            self.path.unlink()


def encode(checkpoint: Checkpoint) -> bytes:
    """The file's bytes; the same state gives the same bytes."""
    data = {
        "version": VERSION,
        "node": checkpoint.node,
        "allocations": {uid: one.to_json() for uid, one in checkpoint.allocations.items()},
        "sandboxes": {uid: runtime.to_json(one) for uid, one in checkpoint.sandboxes.items()},
    }
    text = json.dumps(data, separators=(",", ":"), sort_keys=True)
    return f'{{"checksum":"{_checksum(text)}","data":{text}}}\n'.encode()


def decode(data: bytes) -> Checkpoint:
    """What `encode` wrote; CorruptCheckpointError for anything else."""
    try:
        document = json.loads(data)
        body = document["data"]
        text = json.dumps(body, separators=(",", ":"), sort_keys=True)
        if document["checksum"] != _checksum(text):
            raise CorruptCheckpointError("checksum does not match: the file was damaged or edited")
        if body["version"] != VERSION:
            raise CorruptCheckpointError(f"version {body['version']} is not {VERSION}")
        return _from_json(body)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptCheckpointError(f"cannot be read: {error!r}") from None


def _from_json(body: dict[str, Any]) -> Checkpoint:
    return Checkpoint(
        node=body["node"],
        allocations={uid: PodResources.from_json(row) for uid, row in body["allocations"].items()},
        sandboxes={uid: runtime.from_json(uid, row) for uid, row in body["sandboxes"].items()},
    )


def _checksum(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
