"""The state that a node keeps over the death of its kubelet process: allocations and running containers.

The format of the file: JSON, `{"checksum": "sha256:...", "data": {...}}`. Source: KEP-1287, "Kubelet Restart
Tolerance".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypedDict, TypeVar

from nominee.kubelet.resources.pod_resources import PodResources, PodResourcesDocument
from nominee.kubelet.runtime import sandbox as runtime
from nominee.kubelet.runtime.sandbox import PodSandbox, SandboxDocument

T = TypeVar("T")
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


@dataclass(frozen=True, slots=True)
class EncodedPods:
    """The pods of the last checkpoint by uid, each with its JSON: most have not changed at the next one."""

    allocations: dict[str, tuple[PodResources, str]] = field(default_factory=dict)
    sandboxes: dict[str, tuple[PodSandbox, str]] = field(default_factory=dict)


def encode(checkpoint: Checkpoint, encoded: EncodedPods | None = None) -> bytes:
    """Return the file's bytes; the same state gives the same bytes.

    `encoded` has the pods of an earlier call, and gets those of this one.
    """
    encoded = encoded or EncodedPods()
    allocations = _pods(checkpoint.allocations, PodResources.to_json, encoded.allocations)
    sandboxes = _pods(checkpoint.sandboxes, runtime.to_json, encoded.sandboxes)
    # The keys are in alphabetical order, as `decode` writes them to compare the checksum.
    text = (
        f'{{"allocations":{allocations},"node":{_text(checkpoint.node)},"sandboxes":{sandboxes},'
        f'"version":{VERSION}}}'
    )
    return f'{{"checksum":"{_checksum(text)}","data":{text}}}\n'.encode()


def _pods(pods: Mapping[str, T], to_json: Callable[[T], object], encoded: dict[str, tuple[T, str]]) -> str:
    """Return the JSON of pods by uid; that of pods which are the same objects is taken from `encoded`."""
    before = dict(encoded)
    encoded.clear()
    for uid in sorted(pods):
        pod, known = pods[uid], before.get(uid)
        encoded[uid] = known if known is not None and known[0] is pod else (pod, _text(to_json(pod)))
    return f"{{{','.join(f'{_text(uid)}:{text}' for uid, (_, text) in encoded.items())}}}"


def _text(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def decode(data: bytes) -> Checkpoint:
    """Return the checkpoint that `encode` wrote.

    Raises:
        CorruptCheckpointError: it is anything else.
    """
    try:
        document = json.loads(data)
        body = document["data"]
        text = _text(body)
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
