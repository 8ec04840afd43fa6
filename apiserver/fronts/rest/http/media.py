"""Negotiation of the response's media type: JSON, YAML or protobuf; the object, a Table or its metadata only.

Source: kube-apiserver 1.36, endpoints/handlers/negotiation; Accept headers as client-go sends them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
_FORMS = {
    JSON: JSON,
    YAML: YAML,
    PROTOBUF: PROTOBUF,
    "text/yaml": YAML,
    "*/*": JSON,
    "application/*": JSON,
}
_META_VERSIONS = frozenset({"v1", "v1beta1"})
TABLE, PARTIAL, PARTIAL_LIST = "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
DISCOVERY = "APIGroupDiscoveryList"
OBJECTS = f"{JSON}, {YAML}, {PROTOBUF}"
STREAMS = f"{OBJECTS}, {JSON};stream=watch, {PROTOBUF};stream=watch"


@dataclass(frozen=True, slots=True)
class Media:
    """A form (`JSON`, ...), and how the object is shown ("" for itself, `TABLE`, `PARTIAL`, ...)."""

    form: str = JSON
    shown_as: str = ""
    version: str = "v1"

    @property
    def content_type(self) -> str:
        """The Content-Type of a response that is no stream."""
        return self.form


DEFAULT = Media()


def _clauses(accept: str) -> Iterable[tuple[str, dict[str, str]]]:
    """Return (media type, parameters) by falling q, in the header's order among equals."""
    found = []
    for position, clause in enumerate(accept.split(",")):
        name, *rest = (part.strip() for part in clause.split(";"))
        parameters = {}
        for part in rest:
            key, _, value = part.partition("=")
            parameters[key.strip().lower()] = value.strip().strip('"')
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 1.0
        if name:
            found.append((-quality, position, name.lower(), parameters))
    for _, _, name, parameters in sorted(found, key=lambda each: each[:2]):
        yield name, parameters


def negotiate(accept: str, *, shown: frozenset[str] = frozenset()) -> Media | None:
    """Return the first form in `accept` that is supported, or None.

    `shown` has the ways to show an object here (`TABLE`, ...).
    """
    if not accept.strip():
        return DEFAULT
    for name, parameters in _clauses(accept):
        form = _FORMS.get(name)
        if form is None:
            continue
        shown_as = parameters.get("as", "")
        if shown_as:
            wanted = (parameters.get("g"), parameters.get("v"))
            if shown_as == DISCOVERY:
                fits = wanted == ("apidiscovery.k8s.io", "v2")
            else:
                fits = wanted[0] == "meta.k8s.io" and wanted[1] in _META_VERSIONS
            if shown_as not in shown or not fits or (form == PROTOBUF and shown_as in (TABLE, DISCOVERY)):
                continue
        return Media(form, shown_as, parameters.get("v") or "v1")
    return None


def accepted_media_types(accept: str) -> list[str]:
    """Return the media types of an Accept header by preference; `*/*` without a header."""
    return [name for name, _ in _clauses(accept)] or ["*/*"]


def content_type(header: str) -> str:
    """Return the media type of a Content-Type header, without its parameters, in lower case."""
    return header.partition(";")[0].strip().lower()
