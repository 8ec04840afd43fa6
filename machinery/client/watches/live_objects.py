"""Reads of objects that may not exist."""

from __future__ import annotations

from nominee.machinery.api.errors import ignoring, is_not_found
from nominee.machinery.api.kinds import Kind, M
from nominee.machinery.client.api_client import Client


async def get_if_exists(client: Client, kind: Kind[M], name: str, namespace: str = "") -> M | None:
    """Return an object as the API server has it, None where there is no such object. Raises: StatusError."""
    with ignoring(is_not_found):
        return await client.get(kind, name, namespace)
    return None
