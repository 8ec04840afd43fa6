"""Change the manifests of a cluster, by the rules of `--what-if`.

node n3 +4cpu -1Gi memory       add node n9 like n3         pod ns/name on n3
remove node n3                  add 5 nodes like n3         pod ns/name cpu=2 memory=1Gi
drain node n3                   remove pod ns/name          pod ns/name priority=100
label node n3 zone=b            taint node n3 key=v:NoSchedule
label pod ns/name app-          taint node n3 key-

Labels and taints are written as for kubectl. Several changes of one text are separated by semicolons.
"""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from nominee.machinery.resources.quantity import Quantity, QuantityError

Document = Mapping[str, Any]
_Tree = dict[str, Any]
"""A document, or a part of one, that is changed."""
Documents = list[Document]

_AMOUNT: Final = re.compile(
    r"(?P<sign>[+-])(?P<number>\d+(?:\.\d+)?(?:m|[KMGTPE]i?|k)?)\s*"
    r"(?P<resource>cpu|memory|pods|ephemeral-storage|hugepages-\w+|[a-z0-9.-]+/[\w.-]+)(?=\s|$)"
)
_TAINT: Final = re.compile(
    r"(?P<key>[\w./-]*?\w)(?:=(?P<value>[\w.-]*))?(?::(?P<effect>NoSchedule|PreferNoSchedule|NoExecute))?(?P<minus>-)?"
)
_NODES_MAX: Final = 5000
_HOSTNAME: Final = "kubernetes.io/hostname"
_DEFAULT_NAMESPACE: Final = "default"


class ChangeError(ValueError):
    """A change that is not understood, or names an object that does not exist."""


def change(documents: Iterable[Document], changes: Sequence[str]) -> Documents:
    """Return the documents with all changes made, in order; the given documents stay unchanged.

    Raises:
        ChangeError: a change is not understood, or names an object that does not exist.
    """
    changed = list(documents)
    for text in (part for each in changes for part in each.split(";") if part.strip()):
        for pattern, apply in _FORMS:
            found = pattern.fullmatch(" ".join(text.split()))
            if found is not None:
                changed = apply(changed, **found.groupdict())
                break
        else:
            raise ChangeError(
                f"{text!r} is not understood; write 'node NAME +4cpu', 'add node NAME like NAME', 'add N "
                "nodes like NAME', 'remove node NAME', 'drain node NAME', 'label node NAME KEY=VALUE', "
                "'taint node NAME KEY=VALUE:EFFECT', 'remove pod NS/NAME', 'pod NS/NAME on NODE', "
                "'pod NS/NAME cpu=2' or 'pod NS/NAME priority=100'"
            )
    return changed


def _is_node(document: Document, name: str) -> bool:
    return document.get("kind") == "Node" and document.get("metadata", {}).get("name") == name


def _is_pod(document: Document, key: str) -> bool:
    metadata = document.get("metadata", {})
    own = f"{metadata.get('namespace') or _DEFAULT_NAMESPACE}/{metadata.get('name')}"
    return document.get("kind") == "Pod" and own == (key if "/" in key else f"{_DEFAULT_NAMESPACE}/{key}")


def _find(documents: Documents, matches: Callable[[Document], bool], what: str) -> int:
    for index, document in enumerate(documents):
        if matches(document):
            return index
    raise ChangeError(f"there is no {what}")


def _grow_node(documents: Documents, name: str, amounts: str) -> Documents:
    index = _find(documents, lambda d: _is_node(d, name), f"node {name}")
    if _AMOUNT.sub("", amounts).strip():
        raise ChangeError(f"{amounts!r}: expected amounts such as +4cpu, -500m cpu or +8Gi memory")
    node: _Tree = copy.deepcopy(dict(documents[index]))
    status = node.setdefault("status", {})
    allocatable = status.setdefault("allocatable", dict(status.get("capacity", {})))
    for found in _AMOUNT.finditer(amounts):
        resource = found["resource"]
        try:
            before = Quantity.parse(str(allocatable.get(resource, "0")))
            by = Quantity.parse(found["sign"] + found["number"])
        except QuantityError as error:
            raise ChangeError(f"{found[0]}: {error}") from None
        after = before + by
        if after < Quantity.parse("0"):
            raise ChangeError(f"node {name} has only {before} {resource}")
        allocatable[resource] = str(after)
    return [*documents[:index], node, *documents[index + 1 :]]


def _add_node(documents: Documents, name: str, like: str) -> Documents:
    """Return a copy of a node under another name, with its own CSINode and ResourceSlices."""
    if any(_is_node(document, name) for document in documents):
        raise ChangeError(f"node {name} already exists")
    return [*documents, *_copies(_originals(documents, like), name, like)]


def _originals(documents: Documents, like: str) -> Documents:
    """Return a node, and then its own CSINode and ResourceSlices."""
    node = documents[_find(documents, lambda d: _is_node(d, like), f"node {like}")]
    csi_nodes = [
        d for d in documents if d.get("kind") == "CSINode" and d.get("metadata", {}).get("name") == like
    ]
    return [node, *csi_nodes, *(document for document in documents if _is_slice_of(document, like))]


def _copies(originals: Documents, name: str, like: str) -> Documents:
    """Return the objects of a node for one of another name."""
    node: _Tree = copy.deepcopy(dict(originals[0]))
    metadata = node["metadata"]
    metadata["name"] = name
    metadata.pop("uid", None)
    if _HOSTNAME in metadata.get("labels", {}):
        metadata["labels"][_HOSTNAME] = name
    added: Documents = [node]
    for document in originals[1:]:
        if document.get("kind") == "CSINode":
            csi_node: _Tree = copy.deepcopy(dict(document))
            csi_node["metadata"]["name"] = name
            added.append(csi_node)
        else:
            added.append(_copied_slice(document, name, like))
    return added


def _is_slice_of(document: Document, node: str) -> bool:
    return document.get("kind") == "ResourceSlice" and (document.get("spec") or {}).get("nodeName") == node


def _copied_slice(document: Document, node: str, like: str) -> Document:
    """Return the slice for another node, in a pool of that node: slices with one pool name form one pool."""
    copied: _Tree = copy.deepcopy(dict(document))
    copied["metadata"]["name"] = f"{copied['metadata'].get('name', '')}-{node}"
    copied["metadata"].pop("uid", None)
    copied["spec"]["nodeName"] = node
    pool = copied["spec"].get("pool") or {}
    pool["name"] = node if pool.get("name", like) == like else f"{pool['name']}-{node}"
    copied["spec"]["pool"] = pool
    return copied


def _remove_node(documents: Documents, name: str) -> Documents:
    """Remove the node and the pods that run on it."""
    _find(documents, lambda d: _is_node(d, name), f"node {name}")

    def goes(document: Document) -> bool:
        spec = document.get("spec") or {}
        return _is_node(document, name) or (document.get("kind") == "Pod" and spec.get("nodeName") == name)

    return [document for document in documents if not goes(document)]


def _remove_pod(documents: Documents, key: str) -> Documents:
    """Remove the pod, its own claims, and its reservations of others, as the controllers would."""
    index = _find(documents, lambda d: _is_pod(d, key), f"pod {key}")
    metadata = documents[index].get("metadata", {})
    rest = [*documents[:index], *documents[index + 1 :]]
    freed = (_without_user(document, metadata) for document in rest)
    return [document for document in freed if document is not None]


def _without_user(document: Document, pod: Document) -> Document | None:
    """Return a claim without this pod as a user; None if the claim was created for the pod."""
    metadata = document.get("metadata", {})
    here = pod.get("namespace") or _DEFAULT_NAMESPACE
    if document.get("kind") != "ResourceClaim" or (metadata.get("namespace") or _DEFAULT_NAMESPACE) != here:
        return document

    def is_it(reference: Document) -> bool:
        uid = pod.get("uid")
        return reference.get("name") == pod.get("name") and uid in (None, reference.get("uid"))

    if any(owner.get("kind") == "Pod" and is_it(owner) for owner in metadata.get("ownerReferences") or ()):
        return None
    status = document.get("status") or {}
    users = [user for user in status.get("reservedFor") or () if user.get("resource", "pods") == "pods"]
    if not any(is_it(user) for user in users):
        return document
    left = [user for user in status["reservedFor"] if not is_it(user)]
    return {**document, "status": {**status, "reservedFor": left} if left else {}}


def _put_pod(documents: Documents, key: str, node: str) -> Documents:
    _find(documents, lambda d: _is_node(d, node), f"node {node}")
    return _changed(documents, "pod", key, lambda pod: pod.setdefault("spec", {}).update(nodeName=node))


def _add_nodes(documents: Documents, count: str, like: str) -> Documents:
    if not 1 <= int(count) <= _NODES_MAX:
        raise ChangeError(f"'add {count} nodes': the number must be between 1 and {_NODES_MAX}")
    taken = {
        (document.get("metadata") or {}).get("name")
        for document in documents
        if document.get("kind") == "Node"
    }
    names = (name for number in itertools.count(1) if (name := f"{like}-copy-{number}") not in taken)
    originals = _originals(documents, like)
    copies = [_copies(originals, name, like) for name in itertools.islice(names, int(count))]
    return [*documents, *itertools.chain.from_iterable(copies)]


def _drain_node(documents: Documents, name: str) -> Documents:
    """Make a node unschedulable and its pods pending, except for those of DaemonSets and static ones."""
    index = _find(documents, lambda d: _is_node(d, name), f"node {name}")

    def without_node(document: Document) -> Document:
        spec, metadata = document.get("spec") or {}, document.get("metadata") or {}
        stays = any(
            owner.get("kind") in ("DaemonSet", "Node") for owner in metadata.get("ownerReferences") or ()
        )
        if document.get("kind") != "Pod" or spec.get("nodeName") != name or stays:
            return document
        rest = {key: value for key, value in document.items() if key != "status"}
        return {**rest, "spec": {key: value for key, value in spec.items() if key != "nodeName"}}

    node = documents[index]
    cordoned = {**node, "spec": {**(node.get("spec") or {}), "unschedulable": True}}
    return [without_node(each) for each in (*documents[:index], cordoned, *documents[index + 1 :])]


def _changed(documents: Documents, kind: str, name: str, edit: Callable[[_Tree], None]) -> Documents:
    """Return the documents with a copy of a node or pod that `edit` has changed."""
    matches = _is_node if kind == "node" else _is_pod
    index = _find(documents, lambda d: matches(d, name), f"{kind} {name}")
    copied: _Tree = copy.deepcopy(dict(documents[index]))
    edit(copied)
    return [*documents[:index], copied, *documents[index + 1 :]]


def _label(documents: Documents, kind: str, name: str, labels: str) -> Documents:
    def edit(document: _Tree) -> None:
        found = document["metadata"].setdefault("labels", {})
        for text in labels.split():
            key, equals, value = text.partition("=")
            if equals:
                found[key] = value
            elif key.endswith("-"):
                found.pop(key[:-1], None)
            else:
                raise ChangeError(f"{text!r}: expected KEY=VALUE or KEY-")

    return _changed(documents, kind, name, edit)


def _taint(documents: Documents, name: str, taint: str) -> Documents:
    found = _TAINT.fullmatch(taint)
    if found is None or not (found["minus"] or found["effect"]):
        raise ChangeError(f"{taint!r}: expected KEY=VALUE:NoSchedule, KEY:NoExecute or KEY-")

    def edit(document: _Tree) -> None:
        spec = document.setdefault("spec", {})
        others = [
            each
            for each in spec.get("taints") or ()
            if each.get("key") != found["key"] or found["effect"] not in (None, each.get("effect"))
        ]
        new = {"key": found["key"], "value": found["value"] or "", "effect": found["effect"]}
        spec["taints"] = others if found["minus"] else [*others, new]

    return _changed(documents, "node", name, edit)


def _set_pod(documents: Documents, key: str, values: str) -> Documents:
    """Set the priority of a pod, or the requests of its first container."""

    def edit(document: _Tree) -> None:
        spec = document.setdefault("spec", {})
        for name, _, value in (text.partition("=") for text in values.split()):
            if name == "priority":
                if not re.fullmatch(r"-?\d+", value):
                    raise ChangeError(f"priority {value!r} is not a whole number")
                spec["priority"] = int(value)
                spec.pop("priorityClassName", None)
                continue
            try:
                Quantity.parse(value)
            except QuantityError as error:
                raise ChangeError(f"{name}={value}: {error}") from None
            container = (spec.get("containers") or [{}])[0]
            container.setdefault("resources", {}).setdefault("requests", {})[name] = value

    return _changed(documents, "pod", key, edit)


_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[..., Documents]], ...]] = (
    (re.compile(r"node (?P<name>\S+) (?P<amounts>[+-].+)"), _grow_node),
    (re.compile(r"add node (?P<name>\S+) like (?P<like>\S+)"), _add_node),
    (re.compile(r"remove node (?P<name>\S+)"), _remove_node),
    (re.compile(r"remove pod (?P<key>\S+)"), _remove_pod),
    (re.compile(r"pod (?P<key>\S+) on (?P<node>\S+)"), _put_pod),
    (re.compile(r"pod (?P<key>\S+) (?P<values>\S+=\S+(?: \S+=\S+)*)"), _set_pod),
    (re.compile(r"add (?P<count>\d+) nodes? like (?P<like>\S+)"), _add_nodes),
    (re.compile(r"drain node (?P<name>\S+)"), _drain_node),
    (re.compile(r"label (?P<kind>node|pod) (?P<name>\S+) (?P<labels>.+)"), _label),
    (re.compile(r"taint node (?P<name>\S+) (?P<taint>\S+)"), _taint),
)
