"""Descriptions of fields from Kubernetes' own schemas, read on the first request for a Table or OpenAPI."""

from __future__ import annotations

from functools import cache

from nominee.apiserver.schema import releases


def of(described: str) -> str:
    """Return the description of `schema#field` (`podstatus-v1#podIP`); other text is returned as it is."""
    schema, separator, name = described.partition("#")
    if not separator:
        return described
    return _descriptions().get(schema, {}).get(name, "")


@cache
def _descriptions() -> dict[str, dict[str, str]]:
    """Return the descriptions of the fields of each schema in the newest release."""
    return {
        _short(name): {
            field: each["description"]
            for field, each in schema.get("properties", {}).items()
            if "description" in each
        }
        for name, schema in (releases.definitions(releases.newest()) or {}).items()
    }


def _short(name: str) -> str:
    """Return `podstatus-v1` of io.k8s.api.core.v1.PodStatus, `scale-autoscaling-v1` of other groups."""
    *_, group, version, kind = name.split(".")
    return f"{kind}-{version}".lower() if group == "core" else f"{kind}-{group}-{version}".lower()
