"""Find the member of etcd that leads, from its status (etcd's gRPC gateway)."""

from __future__ import annotations

import json
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Final

from nominee.localcluster.credentials.etcd_pki import EtcdPki
from nominee.machinery.process.run_files import RunFile

CERTIFICATES: Final = "certificates"
"""Key of the run file: the folder of the certificates that etcd (and its health check) requires."""
ANSWER_SECONDS_MAX: Final = 2.0


def leader(directory: Path) -> str:
    """Return the name of the member that leads, "" if no member that runs does."""
    for member in RunFile.of_component(directory, "etcd"):
        with suppress(OSError, HTTPException, ValueError, KeyError):
            if _leads(member):
                return member.name
    return ""


def _leads(member: RunFile) -> bool:
    folder = member.document.get(CERTIFICATES)
    certificates = None if folder is None else EtcdPki(Path(str(folder)))
    connection = connection_to(member.grpc, ANSWER_SECONDS_MAX, certificates)
    try:
        connection.request("POST", "/v3/maintenance/status", body="{}")
        status = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return bool(status["leader"] == status["header"]["member_id"])


def connection_to(client: str, timeout_seconds: float, certificates: EtcdPki | None) -> HTTPConnection:
    """Return a connection to the etcd at `host:port`, which is opened with the first request."""
    if certificates is None:
        return HTTPConnection(client, timeout=timeout_seconds)
    return HTTPSConnection(client, timeout=timeout_seconds, context=certificates.health_check_context())
