"""The schema files of Kubernetes' releases, in the package kubernetes-validate."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

from nominee.machinery.features.gates import Version


@cache
def _root() -> Path | None:
    # The package is not imported: it would import jsonschema.
    found = importlib.util.find_spec("kubernetes_validate")
    if found is None or found.origin is None:
        return None
    root = Path(found.origin).parent / "kubernetes-json-schema"
    return root if root.is_dir() else None


def directory(version: Version) -> Path | None:
    """Return the directory of a release's schemas, or None when it does not exist."""
    root = _root()
    if root is None:
        return None
    found = root / f"v{version}.0-local"
    return found if found.is_dir() else None


@cache
def newest() -> Version:
    """Return the newest release that has schemas."""
    root = _root()
    versions = [
        Version(*(int(part) for part in path.name[1:].partition("-")[0].split(".")[:2]))
        for path in (root.glob("v*-local") if root is not None else ())
    ]
    return max(versions, default=Version(1, 36))
