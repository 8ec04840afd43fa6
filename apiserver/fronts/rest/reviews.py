"""What the bodies of reviews are over REST."""

from __future__ import annotations

from functools import cache
from typing import Any

from k8s.io.api.authentication.v1 import generated_pb2 as authentication
from k8s.io.api.authorization.v1 import generated_pb2 as authorization

from apiserver.fronts.rest.bodies import Expected
from apiserver.fronts.rest.discovery import Virtual


@cache
def expected(virtual: Virtual) -> Expected:
    """What such a review's body is."""
    module: Any = authentication if virtual.group == "authentication.k8s.io" else authorization
    return Expected(virtual.api_version, virtual.kind, getattr(module, virtual.kind))
