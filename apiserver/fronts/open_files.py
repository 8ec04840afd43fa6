"""The largest number of connections of each front, by the process's limit of open files."""

from __future__ import annotations

import resource
from dataclasses import dataclass

from nominee.machinery.client.grpc_options import CONNECTION_OPTIONS

REST_MAX = 10_000
"""Watches count; a further connection gets 503."""
GRPC_MAX = int(dict(CONNECTION_OPTIONS)["grpc.max_allowed_incoming_connections"])
"""A component has one or two; beyond it a new connection is closed. 50 KB each while TLS is set up."""
_OTHER_FILES = 256
"""Files that are open besides connections: etcd's, logs, listeners."""
_GRPC_SHARE = 4


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The largest number of connections of each front."""

    grpc: int
    rest: int


def share(files: int) -> ConnectionLimits:
    """Share `files` among the fronts."""
    grpc = min(GRPC_MAX, max(files // _GRPC_SHARE, 1))
    return ConnectionLimits(grpc, min(REST_MAX, max(files - grpc - _OTHER_FILES, 1)))


def connection_limits() -> ConnectionLimits:
    """Raise the process's limit of open files as far as is useful and allowed, and share it."""
    useful = REST_MAX + GRPC_MAX + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= useful:
        return share(useful)
    allowed = useful if hard == resource.RLIM_INFINITY else min(useful, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return share(allowed)
