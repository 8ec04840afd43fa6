"""The Status of a storage error."""

from __future__ import annotations

from nominee.apiserver.storage.interface import (
    Compacted,
    FutureRevision,
    StorageError,
    StorageUnavailable,
    ValueTooLarge,
)
from nominee.machinery.api import errors
from nominee.machinery.api.errors import StatusError


def to_status(error: StorageError) -> StatusError:
    """Return the StatusError for an error that the registry does not handle itself, as it does KeyExists."""
    match error:
        case Compacted():
            return errors.expired("The resourceVersion for the provided list is too old.")
        case FutureRevision():
            return errors.timeout(f"Too large resource version: {error.revision}", 1)
        case ValueTooLarge():
            return errors.request_too_large(str(error))
        case StorageUnavailable(timed_out=True):
            return errors.timeout(str(error), 1)
        case StorageUnavailable():
            return errors.service_unavailable(str(error))
        case _:
            return errors.internal(str(error))
