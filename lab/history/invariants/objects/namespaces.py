"""A namespace is removed after its objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nominee.lab.history.invariants.checking.checker import Checker, Invariant, Violation
from nominee.lab.history.invariants.checking.evidence import ComponentSettings
from nominee.lab.history.revision import Revision
from nominee.machinery.api.kinds import NAMESPACE, AnyKind
from nominee.machinery.api.objects import is_terminating

_NAMED_MAX: Final = 5


class Namespaces(Checker):
    """Counts the objects of each namespace.

    An object that was created after the namespace had been marked may have been let in by an API server
    that did not know it yet.
    Source: kube-controller-manager 1.36, namespace (namespacedResourcesDeleter).
    """

    about = Invariant(
        name="namespaces-are-empty",
        description="A namespace is removed when no object is left in it that is older than its deletion.",
        checks="removals of namespaces",
    )
    kinds = None

    def __init__(self, settings: ComponentSettings) -> None:
        super().__init__(settings)
        self._objects: dict[str, dict[str, Revision]] = {}
        """The creation of each object, by namespace and key."""
        self._marks: dict[str, int] = {}

    def observes(self, kind: AnyKind | None) -> bool:
        """Return whether the kind is known: all of them."""
        return kind is not None

    def observe(self, revision: Revision) -> Iterator[Violation]:
        """Note an object, or check the removal of a namespace."""
        if revision.kind is NAMESPACE:
            yield from self._observe_namespace(revision)
        elif revision.namespace and revision.kind is not None:
            objects = self._objects.setdefault(revision.namespace, {})
            if revision.value is None:
                objects.pop(revision.key, None)
            elif revision.previous_value is None:
                objects[revision.key] = revision

    def _observe_namespace(self, revision: Revision) -> Iterator[Violation]:
        namespace = revision.after(NAMESPACE)
        if namespace is not None:
            if is_terminating(namespace):
                self._marks.setdefault(revision.name, revision.revision)
            return
        self.checked += 1
        mark = self._marks.pop(revision.name, revision.revision)
        left = [each for each in self._objects.get(revision.name, {}).values() if each.revision < mark]
        if left:
            names = ", ".join(each.subject for each in left[:_NAMED_MAX])
            yield self.violation(f"the namespace was removed before {names}", revision, *left[:_NAMED_MAX])
