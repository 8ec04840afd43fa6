"""Which certificate signing requests are deleted for their age. Pure.

Source: kube-controller-manager 1.36, pkg/controller/certificates/cleaner.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from nominee.machinery.api.pb import certificates
from nominee.machinery.runtime.clock import from_time

PENDING_SECONDS: Final = 24 * 3600.0
ANSWERED_SECONDS: Final = 3600.0
"""How long a request is kept that was signed, denied or has failed."""


def is_garbage(
    request: certificates.CertificateSigningRequest, now: float, end_of: Callable[[bytes], datetime | None]
) -> bool:
    """Report whether a request is old, or its certificate has expired.

    `now` is in seconds since the epoch, `end_of` returns until when a certificate is valid.
    """
    status = request.status
    if not status.conditions:
        return now - from_time(request.metadata.creationTimestamp) > PENDING_SECONDS
    for row in status.conditions:
        old = row.HasField("lastUpdateTime") and now - from_time(row.lastUpdateTime) > ANSWERED_SECONDS
        if row.type in ("Denied", "Failed") and old:
            return True
        if row.type == "Approved" and status.certificate:
            end = None if old else end_of(status.certificate)
            if old or (end is not None and end.timestamp() < now):
                return True
    return False
