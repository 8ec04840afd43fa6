"""The pod as the last sync read it, so that a watch event with nothing else needs no sync. Pure.

A kubelet's own status patch comes back through the watch with everything that other clients changed before
it, a deletion for instance. So an event is judged by its content, never by the client that wrote last: not by
its resourceVersion and not by its managedFields.
"""

from __future__ import annotations

from dataclasses import dataclass

from nominee.machinery.api.pb import core, meta

_METADATA_FIELDS = tuple(
    field.name
    for field in meta.ObjectMeta.DESCRIPTOR.fields
    if field.name not in ("resourceVersion", "managedFields")
)


@dataclass(frozen=True, slots=True)
class LastSync:
    """The pod as the last sync read it, and the status that this sync decided on."""

    pod: core.Pod
    status: core.PodStatus | None = None
    """None until the sync has decided."""

    def covers(self, pod: core.Pod) -> bool:
        """Return whether a sync of `pod` would find nothing that the last sync did not act on."""
        return (
            self.status is not None
            and pod.status == self.status
            and pod.spec == self.pod.spec
            and _same_metadata(pod.metadata, self.pod.metadata)
        )


def _same_metadata(one: meta.ObjectMeta, other: meta.ObjectMeta) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in _METADATA_FIELDS)
