"""What a node keeps over the death of its kubelet process: allocations, and the containers that run.

The format of the file: JSON, `{"checksum": "sha256:...", "data": {...}}`. Source: KEP-1287, "Kubelet Restart
Tolerance".
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TypedDict

from kubelet.resources.pod_resources import PodResources, PodResourcesDocument
from kubelet.runtime import sandbox as runtime
from kubelet.runtime.sandbox import PodSandbox, SandboxDocument

VERSION = 1


class CorruptCheckpointError(Exception):
    """The checkpoint cannot be trusted; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A node's state by pod uid."""

    node: str
    allocations: dict[str, PodResources] = field(default_factory=dict)
    sandboxes: dict[str, PodSandbox] = field(default_factory=dict)


class _CheckpointDocument(TypedDict):
    node: str
    allocations: dict[str, PodResourcesDocument]
    sandboxes: dict[str, SandboxDocument]


def encode(checkpoint: Checkpoint) -> bytes:
    """Return the file's bytes; the same state gives the same bytes."""
    data = {
        "version": VERSION,
        "node": checkpoint.node,
        "allocations": {uid: one.to_json() for uid, one in checkpoint.allocations.items()},
        "sandboxes": {uid: runtime.to_json(one) for uid, one in checkpoint.sandboxes.items()},
    }
    text = json.dumps(data, separators=(",", ":"), sort_keys=True)
    return f'{{"checksum":"{_checksum(text)}","data":{text}}}\n'.encode()


def decode(data: bytes) -> Checkpoint:
    """Return the checkpoint that `encode` wrote.

    Raises:
        CorruptCheckpointError: it is anything else.
    """
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


def _from_json(body: _CheckpointDocument) -> Checkpoint:
    return Checkpoint(
        node=body["node"],
        allocations={uid: PodResources.from_json(row) for uid, row in body["allocations"].items()},
        sandboxes={uid: runtime.from_json(uid, row) for uid, row in body["sandboxes"].items()},
    )


def _checksum(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
