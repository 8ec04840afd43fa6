"""Errors of requests that reach no handler, worded as kube-apiserver 1.36 words them."""

from __future__ import annotations

from collections.abc import Iterable

from nominee.machinery.api import errors
from nominee.machinery.api.errors import StatusError
from nominee.machinery.api.pb import meta

BODY_BYTES_MAX = 3 << 20
"""The limit of a write's body."""


def _plain(code: int, reason: str, message: str) -> StatusError:
    """Return a Status with empty details."""
    return StatusError(code, reason, message, details=meta.StatusDetails())


def not_served() -> StatusError:
    """Return the 404 of a resource that is not served."""
    return _plain(404, "NotFound", "the server could not find the requested resource")


def method_not_allowed() -> StatusError:
    """Return the 405 of a resource that does not have the verb."""
    return _plain(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def not_emulated(resource: str) -> StatusError:
    """Return the 501 of a subresource that needs a real node."""
    return _plain(501, "NotImplemented", f"{resource} is not emulated: Nominee's kubelets run no containers")


def too_large() -> StatusError:
    """Return the 413 of a body beyond `BODY_BYTES_MAX`."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {BODY_BYTES_MAX}")


def too_slow() -> StatusError:
    """Return the 504 of a request whose body does not arrive in time."""
    return errors.timeout("request did not complete within the allotted timeout")


def not_acceptable(available: str) -> StatusError:
    """Return the 406 of a request whose Accept header names none of the `available` forms."""
    return _plain(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {available}")


def unsupported_media_type(accepted: Iterable[str]) -> StatusError:
    """Return the 415 of a body whose Content-Type is not one of `accepted`."""
    return StatusError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted),
    )


def unsupported_patch_type() -> StatusError:
    """Return the 415 of a PATCH."""
    return _plain(415, "UnsupportedMediaType", "415: Unsupported Media Type")
