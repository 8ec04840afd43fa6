"""Discovery: the groups, versions and resources, from the table of kinds.

Both forms: the documents of each path, and the aggregated APIGroupDiscoveryList (apidiscovery.k8s.io/v2) for
the Accept header of /api and /apis.

Source: kube-apiserver 1.36's responses.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from typing import Any

from nominee.apiserver.chain.handlers import TABLE
from nominee.apiserver.fronts.rest.http import text
from nominee.apiserver.objects import served
from nominee.apiserver.registry.deletions.collection import is_deletable
from nominee.machinery.api.kinds import AnyKind

_READ_VERBS = ["get", "list", "watch"]
_PROXY_VERBS = ["create", "delete", "get", "patch", "update"]
# (group, version, kind) of a subresource's body, when that is not the kind itself.
_SUBRESOURCE_KINDS = {
    "binding": ("", "", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "scale": ("autoscaling", "v1", "Scale"),
    "proxy": ("", "", "NodeProxyOptions"),
}


@cache
def _verbs(subresource: str) -> list[str]:
    """Return the verbs of the chain's handlers, in alphabetical order."""
    if subresource == "proxy":
        return _PROXY_VERBS
    return sorted(verb for verb, name in TABLE if name == subresource)


def verbs_of(kind: AnyKind) -> list[str]:
    """Return the verbs of a kind's objects."""
    if kind.read_only:
        return _READ_VERBS
    of_a_namespace = "default" if kind.namespaced else ""
    return [verb for verb in _verbs("") if verb != "deletecollection" or is_deletable(kind, of_a_namespace)]


@dataclass(frozen=True, slots=True)
class Virtual:
    """A resource that is answered and not stored."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False
    verbs: tuple[str, ...] = ("create",)
    short_names: tuple[str, ...] = ()
    deprecated: str = ""
    """The version since which it is deprecated."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


_READ_ONLY = ("get", "list")
VIRTUAL = (
    *(
        Virtual("admissionregistration.k8s.io", "v1", plural, kind, verbs=_READ_ONLY)
        for plural, kind in (
            ("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
            ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
            ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
            ("validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
            ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
            ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
        )
    ),
    Virtual("", "v1", "bindings", "Binding", namespaced=True),
    Virtual(
        "", "v1", "componentstatuses", "ComponentStatus",
        verbs=("get", "list"), short_names=("cs",), deprecated="1.19",
    ),
    Virtual("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview"),
    Virtual("authentication.k8s.io", "v1", "tokenreviews", "TokenReview"),
    Virtual("authorization.k8s.io", "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", True),
    Virtual("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    Virtual("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    Virtual("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview"),
    Virtual("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", verbs=("get", "list")),
    Virtual("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", namespaced=True, verbs=("get", "list")),
)  # fmt: skip
# Upstream's order of groups; other groups come last.
_ORDER = (
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)


def virtual(group: str, version: str, plural: str) -> Virtual | None:
    """Return the resource that is not stored, by the names of a path, or None."""
    for each in VIRTUAL:
        if (each.group, each.version, each.plural) == (group, version, plural):
            return each
    return None


def _all() -> list[AnyKind | Virtual]:
    return [*served.all_kinds(), *VIRTUAL]


def groups() -> dict[str, list[str]]:
    """Return the versions of each named group, in order."""
    found: dict[str, list[str]] = {}
    for each in _all():
        if each.group and each.version not in found.setdefault(each.group, []):
            found[each.group].append(each.version)
    rank = {name: position for position, name in enumerate(_ORDER)}
    return dict(sorted(found.items(), key=lambda item: (rank.get(item[0], len(rank)), item[0])))


def _resources(group: str, version: str) -> list[AnyKind | Virtual]:
    found: list[AnyKind | Virtual] = [
        each for each in _all() if (each.group, each.version) == (group, version)
    ]
    return sorted(found, key=lambda each: each.plural)


# Documents of paths.


def api_versions(address: str) -> dict[str, Any]:
    """Return the document of /api."""
    where = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": where}


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def group_list() -> dict[str, Any]:
    """Return the document of /apis."""
    listed = [_group(name, versions) for name, versions in groups().items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(name: str) -> dict[str, Any] | None:
    """Return the document of /apis/GROUP, or None."""
    versions = groups().get(name)
    return None if versions is None else {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def resource_list(name: str, version: str) -> dict[str, Any] | None:
    """Return the document of /api/v1 or /apis/GROUP/VERSION, or None."""
    resources = []
    for each in _resources(name, version):
        resources += _listed(each)
    if not resources:
        return None
    group_version = f"{name}/{version}" if name else version
    head = {"kind": "APIResourceList"} if not name else {"kind": "APIResourceList", "apiVersion": "v1"}
    return {**head, "groupVersion": group_version, "resources": resources}


def _listed(each: AnyKind | Virtual) -> list[dict[str, Any]]:
    made: dict[str, Any] = {
        "name": each.plural,
        "singularName": each.kind.lower(),
        "namespaced": each.namespaced,
        "kind": each.kind,
        **_verbs_and_names(each),
    }
    if isinstance(each, Virtual):
        return [made]
    named = f"{each.group}/{each.version}/{each.kind}".encode()
    made["storageVersionHash"] = _hash(named)
    listed = [made]
    for name in sorted(each.subresources):
        sub: dict[str, Any] = {"name": f"{each.plural}/{name}", "singularName": ""}
        sub["namespaced"] = each.namespaced
        if name in _SUBRESOURCE_KINDS:
            sub_group, sub_version, sub_kind = _SUBRESOURCE_KINDS[name]
            if sub_group:
                sub |= {"group": sub_group, "version": sub_version}
            sub["kind"] = sub_kind
        else:
            sub["kind"] = each.kind
        sub["verbs"] = _verbs(name)
        listed.append(sub)
    return listed


def _verbs_and_names(each: AnyKind | Virtual) -> dict[str, Any]:
    """Return the members that both forms have, under the same names."""
    if isinstance(each, Virtual):
        verbs, categories = list(each.verbs), tuple[str, ...]()
    else:
        verbs, categories = verbs_of(each), each.categories
    found = {"verbs": verbs, "shortNames": list(each.short_names), "categories": list(categories)}
    return {name: value for name, value in found.items() if value}


def _hash(named: bytes) -> str:
    import base64

    return base64.b64encode(hashlib.sha256(named).digest()[:8]).decode()


# Aggregated discovery.


def aggregated_discovery(*, core: bool) -> dict[str, Any]:
    """Return the APIGroupDiscoveryList of /api (`core`) or /apis."""
    found = {"": ["v1"]} if core else groups()
    items = []
    for name, versions in found.items():
        listed = [
            {"version": version, "resources": _discovered(name, version), "freshness": "Current"}
            for version in versions
        ]
        items.append({"metadata": {"name": name} if name else {}, "versions": listed})
    head = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
    return {**head, "metadata": {}, "items": items}


def _discovered(name: str, version: str) -> list[dict[str, Any]]:
    return [_aggregated_resource(each) for each in _resources(name, version)]


def _response_kind(kind: str, group: str = "", version: str = "") -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}


def _aggregated_resource(each: AnyKind | Virtual) -> dict[str, Any]:
    made: dict[str, Any] = {
        "resource": each.plural,
        "responseKind": _response_kind(each.kind),
        "scope": "Namespaced" if each.namespaced else "Cluster",
        "singularResource": each.kind.lower(),
        **_verbs_and_names(each),
    }
    if isinstance(each, Virtual):
        return made
    # The subresource's group and version stay empty, as in kube-apiserver 1.36.
    kinds_of = {name: _SUBRESOURCE_KINDS.get(name, ("", "", each.kind)) for name in sorted(each.subresources)}
    if kinds_of:
        made["subresources"] = [
            {"subresource": name, "responseKind": _response_kind(kind, group, version), "verbs": _verbs(name)}
            for name, (group, version, kind) in kinds_of.items()
        ]
    return made


def etag(document: dict[str, Any]) -> str:
    """Return the ETag of a document."""
    return f'"{hashlib.sha512(text.dump(document).encode()).hexdigest().upper()}"'
