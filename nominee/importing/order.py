"""The order of an import: an object comes after those that it refers to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from nominee.importing.sources import Document, identity, metadata_of

_LAST = frozenset({"ResourceQuota", "LimitRange"})
"""What they limit has been admitted once, by the other cluster."""
_Name = tuple[str, str, str]
"""Kind, namespace ("" for cluster scope) and name. Groups do not matter to an order."""


def waves(documents: Sequence[Document]) -> list[list[Document]]:
    """Return the objects in waves: those of a wave refer to objects of earlier waves only.

    References in a circle do not count; objects that limit others come last.
    """
    by_name: dict[_Name, int] = {}
    by_uid: dict[str, int] = {}
    for number, document in enumerate(documents):
        _, kind, namespace, name = identity(document)
        by_name[kind, namespace, name] = number
        if uid := metadata_of(document).get("uid"):
            by_uid[uid] = number
    edges = [
        [
            *(by_name[each] for each in references(document) if each in by_name),
            *(by_uid[uid] for uid in owner_uids(document) if uid in by_uid),
        ]
        for document in documents
    ]
    depths = _depths(edges)
    last = max(depths, default=0) + 1
    found: list[list[Document]] = [[] for _ in range(last + 1)]
    for document, depth in zip(documents, depths, strict=True):
        found[last if document.get("kind") in _LAST else depth].append(document)
    return [wave for wave in found if wave]


def _depths(edges: Sequence[Sequence[int]]) -> list[int]:
    """Return for each object the longest path of references below it."""
    found: dict[int, int] = {}

    def depth(number: int, above: frozenset[int]) -> int:
        if number in above:
            return -1
        if number not in found:
            path = above | {number}
            found[number] = 1 + max((depth(each, path) for each in edges[number]), default=-1)
        return found[number]

    return [depth(number, frozenset()) for number in range(len(edges))]


def owner_references(document: Document) -> list[Document]:
    """Return an object's owner references; none if the field has another form, which no server accepts."""
    found = metadata_of(document).get("ownerReferences")
    if isinstance(found, list) and all(isinstance(each, Mapping) for each in found):
        return found
    return []


def owner_uids(document: Document) -> Iterator[str]:
    """Yield the uids of an object's owners; "" for an owner without one."""
    for reference in owner_references(document):
        yield str(reference.get("uid") or "")


def references(document: Document) -> Iterator[_Name]:
    """Yield the objects that admission and controllers look for when they see this one."""
    _, kind, namespace, _ = identity(document)
    if namespace:
        yield "Namespace", "", namespace
    spec = document.get("spec")
    if not isinstance(spec, Mapping):
        return
    if kind == "Pod":
        yield from _of_pod(spec, namespace)
    elif kind == "PersistentVolumeClaim":
        yield "StorageClass", "", str(spec.get("storageClassName"))
        yield "PersistentVolume", "", str(spec.get("volumeName"))
    elif kind == "PersistentVolume":
        yield "StorageClass", "", str(spec.get("storageClassName"))
    elif kind == "Service":
        yield "ServiceCIDR", "", "kubernetes"


def _of_pod(spec: Document, namespace: str) -> Iterator[_Name]:
    yield "Node", "", str(spec.get("nodeName"))
    yield "PriorityClass", "", str(spec.get("priorityClassName"))
    yield "RuntimeClass", "", str(spec.get("runtimeClassName"))
    yield "ServiceAccount", namespace, service_account(spec)
    for volume in spec.get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            yield "PersistentVolumeClaim", namespace, str(claim.get("claimName"))
    for claim in spec.get("resourceClaims") or ():
        yield "ResourceClaim", namespace, str(claim.get("resourceClaimName"))


def service_account(spec: Document) -> str:
    """Return the name of a pod's service account."""
    return str(spec.get("serviceAccountName") or "default")


def lacking(documents: Iterable[Document], present: Iterable[_Name]) -> list[Document]:
    """Return namespaces and service accounts that the objects need, and neither they nor `present` have.

    Dumps of nodes and pods only are common; without these two no pod would be admitted.
    """
    known = {*present, *(identity(document)[1:] for document in documents)}
    made: dict[_Name, Document] = {}
    for document in documents:
        _, kind, namespace, _ = identity(document)
        needed: list[_Name] = [("Namespace", "", namespace)] if namespace else []
        if kind == "Pod" and isinstance(document.get("spec"), Mapping):
            needed.append(("ServiceAccount", namespace, service_account(document["spec"])))
        for each in needed:
            if each not in known:
                place = {"name": each[2], **({"namespace": each[1]} if each[1] else {})}
                made[each] = {"apiVersion": "v1", "kind": each[0], "metadata": place}
    return list(made.values())
