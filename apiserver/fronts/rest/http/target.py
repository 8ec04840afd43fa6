"""The target of a request's path: kind, namespace, name, subresource.

Source: kube-apiserver 1.36, endpoints/request (requestinfo.go) and the installer's routes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nominee.apiserver.objects import served
from nominee.machinery.api.kinds import AnyKind


@dataclass(frozen=True, slots=True)
class Target:
    """A path below /api/v1 or /apis/GROUP/VERSION; `name` "" is the collection.

    `watch` is the deprecated /watch/ prefix. `kind` is None when the resource is not a stored kind, or when a
    cluster-scoped one is requested in a namespace. `rest` is the path after the subresource, for proxies.
    """

    group: str
    version: str
    resource: str
    kind: AnyKind | None = None
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch: bool = False
    rest: str = ""

    @property
    def collection(self) -> bool:
        return not self.name


def parse(path: str) -> Target | None:
    """Return the target of an unquoted path; None for a non-resource path."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        group, version, parts = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, parts = parts[1], parts[2], parts[3:]
    else:
        return None
    watch = parts[0] == "watch" and len(parts) > 1
    if watch:
        parts = parts[1:]
    namespace = ""
    # /namespaces/NAME and its two subresources are about the namespace itself.
    if (
        parts[0] == "namespaces"
        and len(parts) > 2
        and not (len(parts) == 3 and parts[2] in ("status", "finalize"))
    ):
        namespace, parts = parts[1], parts[2:]
    if not all(parts[:3]):
        return None
    resource, name, subresource = [*parts, "", ""][:3]
    target = Target(group, version, resource, None, namespace, name, subresource, watch, "/".join(parts[3:]))
    kind = served.by_resource(group, version, resource)
    if kind is None or (namespace and not kind.namespaced):
        return target
    return replace(target, kind=kind)
