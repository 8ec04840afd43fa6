"""The errors that only a REST server gives, worded as kube-apiserver 1.36 words them."""

from __future__ import annotations

from collections.abc import Iterable

from machinery.api import errors
from machinery.api.errors import StatusError
from machinery.api.pb import meta

BODY_BYTES_MAX = 3 << 20


def _plain(code: int, reason: str, message: str) -> StatusError:
    return StatusError(code, reason, message, details=meta.StatusDetails())


def not_served() -> StatusError:
    """404 of a resource that there is none of."""
    return _plain(404, "NotFound", "the server could not find the requested resource")


def method_not_allowed() -> StatusError:
    return _plain(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def not_acceptable(available: str) -> StatusError:
    return _plain(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {available}")


def unsupported_media_type(accepted: Iterable[str]) -> StatusError:
    listed = ", ".join(accepted)
    return StatusError(
        415,
        "UnsupportedMediaType",
        f"the body of the request was in an unknown format - accepted media types include: {listed}",
    )


def unsupported_patch_type() -> StatusError:
    """415 of a PATCH."""
    return _plain(415, "UnsupportedMediaType", "415: Unsupported Media Type")


def too_large() -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {BODY_BYTES_MAX}")


def too_slow() -> StatusError:
    """504 of a request whose body does not come."""
    return errors.timeout("request did not complete within the allotted timeout")


def not_emulated(what: str) -> StatusError:
    """501 of what only a real node could do."""
    return _plain(501, "NotImplemented", f"{what} is not emulated: Nominee's kubelets run no containers")
