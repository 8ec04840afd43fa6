"""Read the objects of a file of manifests; a mistake is reported with the file, the line and the object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.message import Message

from nominee.machinery.wire.files.manifest_lines import line_of
from nominee.machinery.wire.files.manifests import NoObjectError, Place, manifest_documents, parse_object
from nominee.machinery.wire.values.scalars import DecodeError, Json


class ManifestError(ValueError):
    """A file is not one of manifests; the message names the file, and the line, the object and the field."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object of a file, with its JSON and its place there."""

    obj: Message
    document: Mapping[str, Json]
    file: str
    text: str
    place: Place

    def where(self, path: str = "") -> str:
        """Return `FILE:LINE: KIND NAMESPACE/NAME`, with the line of a field."""
        return f"{self.file}:{line_of(self.text, self.place, path)}: {_title(self.document)}"


def read_objects(text: str, file: str, *, strict: bool) -> list[Manifest]:
    """Return the objects of a file's text.

    With `strict` an unknown field is an error, as in kubectl: the server would drop it.

    Raises:
        ManifestError: the text has a mistake.
    """
    found = []
    try:
        for place, document in manifest_documents(text):
            try:
                obj = parse_object(document, strict=strict)
            except DecodeError as error:
                where = f"{file}:{line_of(text, place, error.path)}"
                raise ManifestError(f"{where}: {_title(document)}: {error}") from None
            found.append(Manifest(obj, document, file, text, place))
    except NoObjectError as error:
        raise ManifestError(f"{file}:{line_of(text, error.place)}: {error.message}") from None
    except DecodeError as error:
        raise ManifestError(f"{file}: {error}") from None
    return found


def _title(document: Mapping[str, Json]) -> str:
    """Return kind, namespace and name of a manifest, as far as it has them."""
    metadata = document.get("metadata")
    found = metadata if isinstance(metadata, Mapping) else {}
    name = found.get("name") or found.get("generateName") or "without a name"
    namespace = found.get("namespace")
    return f"{document.get('kind') or 'object'} {f'{namespace}/' if namespace else ''}{name}"
