"""What a client wrote of an object: fields that managedFields ascribe to it, and changes between two states.

No I/O. Defaults that the API server added count as written by the client that created the object; those that
every pod has are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from nominee.lab.history.changes import ADMITTED, POD_DEFAULTS
from nominee.machinery.wire.values.scalars import Json

JsonObject = Mapping[str, Json]

COMPONENTS = frozenset(
    {
        *("kube-apiserver", "kube-scheduler", "kube-controller-manager", "cluster-autoscaler", "kubelet"),
        *("apiserver", "scheduler", "controllers", "autoscaler", "cloud", "cloud-controller-manager"),
    }
)
"""Field managers that are components of a cluster."""
_KINDS_OF_COMPONENTS = frozenset(
    {
        *(
            "CSINode",
            "ControllerRevision",
            "Endpoints",
            "EndpointSlice",
            "Event",
            "IPAddress",
            "Lease",
            "Node",
        ),
        "ServiceCIDR",
    }
)
_NAMES_OF_COMPONENTS = frozenset({("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")})
_KEPT_OF_SPEC: Mapping[str, tuple[str, ...]] = {"Node": ("unschedulable", "podPreemptionPolicy", "taints")}
_DROPPED_OF_SPEC: Mapping[str, tuple[str, ...]] = {
    "Namespace": ("finalizers",),
    "Pod": ("nodeName",),
    "PersistentVolumeClaim": ("volumeName",),
    "PersistentVolume": ("claimRef",),
}
"""Fields that components write in objects of a person."""
_TAINTS_OF_COMPONENTS = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
)
_SECRET_VALUE = "e30="
"""Base64 of {}: valid for every type of Secret."""


def is_component(manager: str) -> bool:
    """Return whether a field manager is a component: `kubelet-1`, `kube-controller-manager/v1.37`."""
    name = manager.partition("/")[0]
    base, dash, index = name.rpartition("-")
    return name in COMPONENTS or (bool(dash) and index.isdigit() and base in COMPONENTS)


def is_tracked(document: JsonObject) -> bool:
    """Return whether an object has managedFields: it was created over REST, as by kubectl."""
    return bool(document["metadata"].get("managedFields"))


def is_made_by_component(document: JsonObject) -> bool:
    """Return whether a component made an object without managedFields, as far as its name and kind show."""
    metadata = document["metadata"]
    annotations = metadata.get("annotations", {})
    return (
        document["kind"] in _KINDS_OF_COMPONENTS
        or (document["kind"], metadata["name"]) in _NAMES_OF_COMPONENTS
        or "pv.kubernetes.io/provisioned-by" in annotations
        or str(metadata.get("namespace", "")).startswith("kube-")
        or metadata["name"].startswith(("system:", "kube-"))
    )


def _untracked(document: JsonObject) -> dict[str, Json]:
    """Return what a client may have written of an object without managedFields, not what components write."""
    kept = _KEPT_OF_SPEC.get(document["kind"])
    spec = document.get("spec", {})
    found = {key: value for key, value in document.items() if key not in ("status", "metadata", "spec")}
    if spec or kept is not None:
        dropped = _DROPPED_OF_SPEC.get(document["kind"], ())
        found["spec"] = {
            key: value for key, value in spec.items() if key not in dropped and (kept is None or key in kept)
        }
        if "taints" in found["spec"]:
            found["spec"]["taints"] = [
                taint for taint in spec["taints"] if not taint["key"].startswith(_TAINTS_OF_COMPONENTS)
            ]
    found["metadata"] = {
        key: own
        for key in ("labels", "annotations")
        if (own := {k: v for k, v in document["metadata"].get(key, {}).items() if "kubernetes.io/" not in k})
    }
    return found


def client_entry(old: JsonObject, new: JsonObject) -> JsonObject | None:
    """Return the entry of managedFields of the client that wrote `new`; None if a component did.

    An entry has the time of its last write in seconds: a second write within one shows by its fields, or by
    their values.
    """
    before = {_identity(entry): entry for entry in old["metadata"].get("managedFields") or ()}
    entries = new["metadata"].get("managedFields") or ()
    changed = [entry for entry in entries if _has_written(before.get(_identity(entry)), entry)]
    if not changed:
        changed = [
            entry
            for entry in entries
            if _owned(old, entry.get("fieldsV1") or {}) != _owned(new, entry.get("fieldsV1") or {})
        ]
    clients = [entry for entry in changed if not is_component(str(entry.get("manager", "")))]
    return max(clients, key=lambda entry: str(entry.get("time", "")), default=None)


def _identity(entry: JsonObject) -> tuple[str, ...]:
    keys = ("manager", "operation", "apiVersion", "subresource")
    return tuple(str(entry.get(key, "")) for key in keys)


def _has_written(before: JsonObject | None, now: JsonObject) -> bool:
    """Return whether an entry shows a write; one that has only lost fields to another does not."""
    if before is None or before.get("time") != now.get("time"):
        return True
    return not _includes(before.get("fieldsV1") or {}, now.get("fieldsV1") or {})


def _includes(fields: JsonObject, others: JsonObject) -> bool:
    return all(key in fields and _includes(fields[key], below) for key, below in others.items())


def target_of(document: JsonObject) -> dict[str, Json]:
    """Return kind, name and, unless it is the default, namespace of an object."""
    metadata = document["metadata"]
    target = {"kind": document["kind"], "name": metadata["name"]}
    namespace = metadata.get("namespace", "")
    return target | ({"namespace": namespace} if namespace not in ("", "default") else {})


def written(document: JsonObject) -> dict[str, Json]:
    """Return a manifest of the fields that clients other than components wrote."""
    manifest: dict[str, Json] = {"apiVersion": document["apiVersion"], "kind": document["kind"]}
    manifest["metadata"] = {"name": document["metadata"]["name"]}
    namespace = document["metadata"].get("namespace", "default")
    if namespace != "default":
        manifest["metadata"]["namespace"] = namespace
    if not is_tracked(document):
        manifest |= {key: value for key, value in _untracked(document).items() if key != "metadata"}
        manifest["metadata"] |= _untracked(document)["metadata"]
    for entry in document["metadata"].get("managedFields") or ():
        if not is_component(str(entry.get("manager", ""))) and not entry.get("subresource"):
            _merge(manifest, _owned(document, entry.get("fieldsV1") or {}))
    manifest.pop("status", None)
    metadata = manifest["metadata"]
    metadata.pop("generateName", None)
    for key, own in (
        ("annotations", "kubectl.kubernetes.io/last-applied-configuration"),
        ("labels", "kubernetes.io/metadata.name"),
    ):
        metadata.get(key, {}).pop(own, None)
        if not metadata.get(key, True):
            del metadata[key]
    found: dict[str, Json] = _without_defaults(manifest)
    return without_secrets(manifest["kind"], found)


def without_secrets(kind: str, manifest: dict[str, Json]) -> dict[str, Json]:
    """Return a manifest or patch without the values of a Secret; the keys stay."""
    if kind != "Secret" or not isinstance(manifest.get("data"), Mapping):
        return manifest
    data = {key: value and _SECRET_VALUE for key, value in manifest["data"].items()}
    return {**manifest, "data": data}


def _owned(value: Json, fields: JsonObject) -> Json:
    """Return the part of a value that fieldsV1 names."""
    names = [key for key in fields if key != "."]
    if not names:
        return value
    if isinstance(value, Mapping):
        return {
            key[2:]: _owned(value[key[2:]], fields[key])
            for key in names
            if key.startswith("f:") and key[2:] in value
        }
    if isinstance(value, list):
        return [_owned(item, fields[key]) for key in names for item in _items(value, key)]
    return value


def _items(value: list[Json], key: str) -> list[Json]:
    """Return the items of a list that a key of fieldsV1 names: k:{"name":"c"} or v:"text"."""
    wanted = json.loads(key[2:])
    if not isinstance(wanted, Mapping):
        return [item for item in value if item == wanted]
    return [item for item in value if isinstance(item, Mapping) and wanted.items() <= item.items()]


def _merge(into: dict[str, Json], more: Json) -> None:
    for key, value in more.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _without_defaults(value: Json) -> Json:
    if isinstance(value, Mapping):
        found = {key: _without_defaults(each) for key, each in value.items()}
        return {
            key: each
            for key, each in found.items()
            if not (key in POD_DEFAULTS and POD_DEFAULTS[key] == each)
            and not (key in ("tolerations", "volumes", "volumeMounts") and not each)
        }
    if isinstance(value, list):
        return [_without_defaults(each) for each in value if not _is_admitted(each)]
    return value


def _is_admitted(item: Json) -> bool:
    """Return whether admission added this toleration, volume or mount to a pod."""
    if not isinstance(item, Mapping):
        return False
    return any(str(item.get(key, "")).startswith(ADMITTED) for key in ("key", "name"))


def change(old: JsonObject, new: JsonObject) -> dict[str, Json]:
    """Return a strategic merge patch from one state to another, without what the API server maintains."""
    if not is_tracked(new):
        return _difference(_untracked(old), _untracked(new))
    return _difference(_plain(old), _plain(new))


def _plain(document: JsonObject) -> dict[str, Json]:
    metadata = {
        key: document["metadata"].get(key)
        for key in ("labels", "annotations")
        if document["metadata"].get(key)
    }
    return {key: value for key, value in document.items() if key != "metadata"} | {"metadata": metadata}


def _difference(old: JsonObject, new: JsonObject) -> dict[str, Json]:
    patch: dict[str, Json] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if value == before:
            continue
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            patch[key] = _difference(before, value)
        elif isinstance(before, list) and _is_named(value) and _is_named(before):
            by_name = {item["name"]: item for item in before}
            patch[key] = [
                {"name": item["name"], **_difference(by_name[item["name"]], item)}
                if item["name"] in by_name
                else item
                for item in value
                if by_name.get(item["name"]) != item
            ]
        else:
            patch[key] = value
    return patch


def _is_named(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) and "name" in item for item in value)
