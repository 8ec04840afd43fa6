"""The OpenAPI definitions of Kubernetes' releases, as proto/schemas.py packs them."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import nominee.pb
from nominee.machinery.features.gates import Version

_FOLDER = Path(nominee.pb.__file__).parent / "releases"


def definitions(version: Version) -> dict[str, Any] | None:
    """Return the definitions of a release by name ("io.k8s.api.core.v1.Pod"), None for an unknown release.

    They are decoded at each call (1.4 MB, about 15 ms): the caller keeps what it needs of them.
    """
    if version not in versions():
        return None
    found: dict[str, Any] = json.loads(gzip.decompress((_FOLDER / f"v{version}.json.gz").read_bytes()))
    return found


@cache
def versions() -> frozenset[Version]:
    """Return the releases that have definitions."""
    names = (path.name[1:].removesuffix(".json.gz") for path in _FOLDER.glob("v*.json.gz"))
    return frozenset(Version(*(int(part) for part in name.split("."))) for name in names)


def newest() -> Version:
    """Return the newest release that has definitions."""
    return max(versions())
