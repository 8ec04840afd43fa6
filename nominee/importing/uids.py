"""Old uids of the objects of an import, and the references to them, where documents lack them. Pure.

Manifests and cleaned dumps have no uids; the importer identifies an object by its old uid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from nominee.importing.order import owner_references
from nominee.importing.sources import Document, Identity, identity, metadata_of


def complete(documents: Sequence[Document], new_uid: Callable[[], str]) -> list[Document]:
    """Return the documents, each with a uid of its own, and with the uid in references to owners among them.

    A document without a uid has the one by which another document names it, else one of `new_uid`. An
    owner reference without a uid, or with that of no document, gets the uid of the owner with its kind and
    name. A reference whose owner is not among the documents stays as it is.
    """
    uids = _uids_by_identity(documents, new_uid)
    known = set(uids.values())
    return [_completed(document, uids, known) for document in documents]


def _uids_by_identity(documents: Sequence[Document], new_uid: Callable[[], str]) -> dict[Identity, str]:
    found: dict[Identity, str] = {}
    taken: set[str] = set()
    for document in documents:
        uid = _uid_of(metadata_of(document))
        if uid and uid not in taken:
            found[identity(document)] = uid
            taken.add(uid)
    named = {target: uid for document in documents for target, uid in _names(document)}
    for document in documents:
        key = identity(document)
        if key not in found:
            uid = named.get(key, "")
            found[key] = uid if uid and uid not in taken else new_uid()
            taken.add(found[key])
    return found


def _names(document: Document) -> Iterator[tuple[Identity, str]]:
    """Yield the objects that a document names with their uids: its owners, and the claim of a volume."""
    for reference in owner_references(document):
        if uid := _uid_of(reference):
            for target in _targets(document, reference):
                yield target, uid
    spec = document.get("spec")
    claim = spec.get("claimRef") if isinstance(spec, Mapping) else None
    if isinstance(claim, Mapping) and (uid := _uid_of(claim)):
        name, namespace = str(claim.get("name")), str(claim.get("namespace"))
        yield ("", "PersistentVolumeClaim", namespace, name), uid


def _targets(document: Document, reference: Document) -> tuple[Identity, Identity]:
    """Return the owner that a reference names: in the object's namespace, or without one."""
    group, slash, _ = str(reference.get("apiVersion", "")).partition("/")
    kind, name = str(reference.get("kind")), str(reference.get("name"))
    namespace = identity(document)[2]
    return (group if slash else "", kind, namespace, name), (group if slash else "", kind, "", name)


def _completed(document: Document, uids: Mapping[Identity, str], known: set[str]) -> Document:
    metadata = {**metadata_of(document), "uid": uids[identity(document)]}
    if references := owner_references(document):
        metadata["ownerReferences"] = [
            reference
            if _uid_of(reference) in known
            else {**reference, **_uid_field(_targets(document, reference), uids)}
            for reference in references
        ]
    return {**document, "metadata": metadata}


def _uid_field(targets: Sequence[Identity], uids: Mapping[Identity, str]) -> dict[str, str]:
    return next(({"uid": uids[target]} for target in targets if target in uids), {})


def _uid_of(fields: Document) -> str:
    uid = fields.get("uid")
    return uid if isinstance(uid, str) else ""
