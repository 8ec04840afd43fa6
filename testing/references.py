"""Name objects of a cluster: `pod("a")`, `node("node-0")`, `ref("Deployment", "web", "team")`."""

from __future__ import annotations

from dataclasses import dataclass

from nominee.lab.scenario.fields import names
from nominee.machinery.api.kinds import AnyKind


@dataclass(frozen=True, slots=True)
class Reference:
    """The kind and name of an object. Without a namespace it is in that of the cluster object that is asked.

    `kind` is a Kind, a plural or a short name: Pod, pods, po, replicasets.apps.
    """

    kind: str
    name: str
    namespace: str = ""

    def in_namespace(self, namespace: str) -> tuple[AnyKind, str]:
        """Return the kind, and the object's namespace, which is `namespace` by default.

        Raises:
            ValueError: no such kind is served.
        """
        kind = kind_named(self.kind)
        return kind, (self.namespace or namespace) if kind.namespaced else ""


def place_of(reference: object, namespace: str) -> tuple[AnyKind, str]:
    """Return the kind and namespace of an object, which is in `namespace` by default.

    Raises:
        TypeError: it is no reference.
        ValueError: no such kind is served.
    """
    if not isinstance(reference, Reference):
        raise TypeError(f"{reference!r} is no reference; write pod(NAME), node(NAME) or ref(KIND, NAME)")
    return reference.in_namespace(namespace)


def kind_named(name: str) -> AnyKind:
    """Return a kind by one of its names. Raises: ValueError: no such kind is served."""
    try:
        return names.kind(name)
    except names.NameProblem as error:
        raise ValueError(str(error)) from None


def pod(name: str, namespace: str = "") -> Reference:
    """Return the reference of a pod."""
    return Reference("Pod", name, namespace)


def node(name: str) -> Reference:
    """Return the reference of a node."""
    return Reference("Node", name)


def ref(kind: str, name: str, namespace: str = "") -> Reference:
    """Return the reference of an object of any kind."""
    return Reference(kind, name, namespace)
