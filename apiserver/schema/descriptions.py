"""Descriptions of fields from Kubernetes' own schemas, read on the first request for a Table or OpenAPI."""

from __future__ import annotations

import json
from functools import lru_cache

from nominee.apiserver.schema import schema_files as schemas


def of(described: str) -> str:
    """Return the description of `schema#field` (`podstatus-v1#podIP`); other text is returned as it is."""
    schema, separator, name = described.partition("#")
    if not separator:
        return described
    return _properties(schema).get(name, "")


@lru_cache(maxsize=64)
def _properties(schema: str) -> dict[str, str]:
    directory = schemas.directory(schemas.newest())
    if directory is None:
        return {}
    document = json.loads((directory / f"{schema}.json").read_bytes())
    return {name: each.get("description", "") for name, each in document.get("properties", {}).items()}
