"""The names of the pods of a stateful set, and of their claims. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from nominee.lab.chaos.rest.state import State
from nominee.machinery.api import kinds
from nominee.machinery.api.objects import is_controlled_by
from nominee.machinery.api.pb import apps, core


def names_of(of: apps.StatefulSet, begin: int = 0) -> list[str]:
    """Return the names of the set's pods in their order, from the index `begin`."""
    start = of.spec.ordinals.start
    return [f"{of.metadata.name}-{n}" for n in range(start + begin, start + of.spec.replicas)]


def missing_names(state: State, of: apps.StatefulSet) -> list[str]:
    """Return the names of the set's pods that do not exist, in their order."""
    pods = state.pods_by_namespace.get(of.metadata.namespace, ())
    present = {pod.metadata.name for pod in pods if is_controlled_by(pod, of)}
    return [name for name in names_of(of) if name not in present]


def missing_claims(state: State, of: apps.StatefulSet) -> Iterator[core.PersistentVolumeClaim]:
    """Yield the claims that the first missing pod does not have yet: they are created before it."""
    namespace = of.metadata.namespace
    claims = state.of(kinds.PERSISTENT_VOLUME_CLAIM)
    present = {each.metadata.name for each in claims if each.metadata.namespace == namespace}
    for name in missing_names(state, of)[:1]:
        for template in of.spec.volumeClaimTemplates:
            claim = core.PersistentVolumeClaim(metadata=template.metadata, spec=template.spec)
            claim.metadata.namespace, claim.metadata.name = namespace, f"{template.metadata.name}-{name}"
            if claim.metadata.name not in present:
                yield claim
