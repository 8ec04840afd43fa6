"""Read files that can be explained: a stream of manifests, or several clusters.

A cluster is an object without a kind: `{"name", "objects", "pod", "featureGates"}`, of which only `objects`
is required. A .jsonl file holds one on each line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nominee.machinery.features.gates import Version
from nominee.machinery.wire.files.manifests import manifest_documents
from nominee.machinery.wire.values.scalars import DecodeError

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """The manifests of a cluster.

    `name` is empty for a stream of manifests. `pod` is the pod to explain, `namespace/name`; "" means every
    pending pod. `version` is the cluster's own, if it is known.
    """

    name: str
    manifests: Sequence[Manifest]
    pod: str = ""
    gates: Mapping[str, bool] = field(default_factory=dict)
    version: Version | None = None


def read_clusters(text: str, *, lines: bool = False) -> Iterator[ClusterFile]:
    """Return the clusters of a file, or the one that a stream of manifests describes.

    `lines`: the file's name says that each line is a document.

    Raises:
        DecodeError: the text is not YAML or JSON, or is neither manifests nor clusters.
    """
    documents: Iterable[tuple[object, Manifest]] = (
        _json_lines(text) if lines or _is_json_line(text) else manifest_documents(text)
    )
    manifests: list[Manifest] = []
    has_clusters = False
    for where, document in documents:
        if "objects" in document and "kind" not in document:
            has_clusters = True
            yield _cluster(document, where)
        else:
            manifests.append(document)
    if manifests and has_clusters:
        raise DecodeError("", "clusters and manifests in one file")
    if not has_clusters:
        yield ClusterFile("", manifests)


def _is_json_line(text: str) -> bool:
    """Return whether the first line is a whole JSON object, as in a file with an object on each line."""
    line, _, rest = text.lstrip().partition("\n")
    if not line.startswith("{"):
        return False
    try:
        json.loads(line)
    except ValueError:
        return False
    return rest.lstrip()[:1] in ("", "{")


def _json_lines(text: str) -> Iterator[tuple[str, Manifest]]:
    """Yield where each object stands, and the object; the objects of a List one by one."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            document = json.loads(line)
        except ValueError as error:
            raise DecodeError(where, f"not valid JSON: {error}") from None
        if not isinstance(document, dict):
            raise DecodeError(where, "expected an object")
        if "objects" in document:
            yield where, document
        else:
            yield from ((where, each) for _, each in manifest_documents(line))


def _cluster(document: Manifest, where: object) -> ClusterFile:
    objects, pod, gates = document["objects"], document.get("pod", ""), document.get("featureGates") or {}
    if not isinstance(objects, list) or not all(isinstance(each, Mapping) for each in objects):
        raise DecodeError(f"{where}.objects", "expected a list of objects")
    if not isinstance(pod, str):
        raise DecodeError(f"{where}.pod", "expected namespace/name")
    if not isinstance(gates, Mapping) or not all(isinstance(each, bool) for each in gates.values()):
        raise DecodeError(f"{where}.featureGates", "expected names with true or false")
    return ClusterFile(str(document.get("name") or where), objects, pod, dict(gates))
