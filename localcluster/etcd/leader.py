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
    connection: HTTPConnection
    if folder is None:
        connection = HTTPConnection(member.grpc, timeout=ANSWER_SECONDS_MAX)
    else:
        context = EtcdPki(Path(str(folder))).health_check_context()
        connection = HTTPSConnection(member.grpc, timeout=ANSWER_SECONDS_MAX, context=context)
    try:
        connection.request("POST", "/v3/maintenance/status", body="{}")
        status = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return bool(status["leader"] == status["header"]["member_id"])
