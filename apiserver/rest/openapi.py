"""OpenAPI documents; not served yet."""

from __future__ import annotations

from apiserver.rest.http import Answer, Request
from machinery.versions import Version


def answer(request: Request, version: Version) -> Answer | None:
    del request, version
    return None
