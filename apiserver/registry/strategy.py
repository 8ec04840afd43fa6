"""The rules of a kind, as functions of objects: what a strategy may decide, and what holds by default.

The order in which the registry asks is upstream's (kube-apiserver 1.36, registry/rest: create.go, update.go).
A strategy has no I/O: time, gates and version come in with the `Environment`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.registry import update_policy
from apiserver.validation import metadata, names, warnings
from apiserver.validation.equality import same
from machinery.api.errors import Cause, StatusError
from machinery.api.kinds import Kind
from machinery.api.pb import meta
from machinery.features.gates import Gates, Version


@dataclass(frozen=True, slots=True)
class Environment:
    """What a rule may depend on besides the objects; `now` is cut to whole seconds."""

    gates: Gates
    now: meta.Time

    @property
    def version(self) -> Version:
        return self.gates.version


class Strategy:
    """The rules of a kind that has none of its own; kinds with rules override what differs.

    `new` in `prepare_*` and `canonicalize` is the caller's and may be changed; `old` is shared and may not.
    """

    # DELETE first marks and later removes (pods).
    graceful = False
    # Owners' dependents are orphaned or waited for by finalizers.
    collects_garbage = True
    # DELETE without a propagation policy orphans the dependents (upstream's DefaultGarbageCollectionPolicy).
    orphans_dependents = False
    # Warns a client whose DELETE has no propagation policy.
    orphaning_warning = ""
    # metadata.generation starts at 1 and counts changes of the spec.
    counts_generation = False
    # The kind's own validation looks at metadata; for others only what holds for every kind is asked.
    judges_metadata = True
    # Finalizers without a domain must be Kubernetes' own.
    standard_finalizers = True
    # Objects go by themselves; 0: never.
    ttl_seconds = 0

    def __init__(self, kind: Kind[Any], subresources: Mapping[str, Strategy] | None = None) -> None:
        self.kind = kind
        self.subresources: Mapping[str, Strategy] = subresources or {}

    @property
    def allow_create_on_update(self) -> bool:
        """Whether a PUT of a name that does not exist creates it."""
        return self.kind in update_policy.CREATED_BY_UPDATE

    @property
    def allow_unconditional_update(self) -> bool:
        """Whether a PUT without a resourceVersion overwrites whatever is there."""
        return self.kind not in update_policy.NEEDS_RESOURCE_VERSION

    def name_rule(self, name: str) -> names.Problems:
        """Which names are allowed, beyond what every path segment must be."""
        return names.dns_subdomain(name)

    # Create.

    def prepare_for_create(self, new: Any, env: Environment) -> None:
        """Reset what a client may not set."""
        if self.counts_generation:
            new.metadata.generation = 1
        if "status" in self.subresources:
            new.ClearField("status")
        self.drop_disabled(new, None, env)

    def validate(self, new: Any, env: Environment) -> list[Cause]:
        return self.validate_metadata(new)

    def validate_metadata(self, new: Any) -> list[Cause]:
        return metadata.object_meta(
            new.metadata,
            namespaced=self.kind.namespaced,
            name_rule=self.name_rule,
            standard=self.standard_finalizers,
        )

    # Update.

    def prepare_for_update(self, new: Any, old: Any, env: Environment) -> None:
        """Put back what this endpoint does not change."""
        if "status" in self.subresources:
            keep(new, old, "status")
        self.drop_disabled(new, old, env)
        if self.counts_generation and not same(new.spec, old.spec):
            new.metadata.generation = old.metadata.generation + 1

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[Cause]:
        return metadata.object_meta_update(new.metadata, old.metadata)

    def canonicalize(self, new: Any) -> None:
        """Normalize what is valid."""

    def early_warnings(self, new: Any) -> Sequence[str]:
        """What the writer should know of a new object, valid or not, before it is prepared."""
        return ()

    def warnings(self, new: Any, old: Any | None) -> Sequence[str]:
        """What the writer should know of an object that is valid; `old` is None on create."""
        return warnings.of(self.kind, new, old)

    def drop_disabled(self, new: Any, old: Any | None, env: Environment) -> None:
        """Remove fields that this version or its gates do not know, unless `old` has them already."""

    # Delete.

    def undeletable(self, name: str) -> str:
        """Why an object of this name may never be deleted, or ""."""
        return ""

    def check_graceful_delete(self, obj: Any, options: meta.DeleteOptions) -> bool:
        """Sets `options.gracePeriodSeconds` and says whether to mark the object first."""
        return False

    def deleted_by_update(self, new: Any, old: Any) -> bool:
        """Whether this update takes the last thing that kept a deleted object."""
        before = old.metadata
        return (
            not new.metadata.finalizers
            and before.HasField("deletionTimestamp")
            and before.deletionGracePeriodSeconds == 0
        )


class ReadOnlyStrategy(Strategy):
    """A kind that is served so that clients find that there is nothing of it."""

    def prepare_for_create(self, new: Any, env: Environment) -> None:
        raise read_only(self.kind)


def read_only(kind: Kind[Any]) -> StatusError:
    """405 of a write."""
    problem = f"{kind.group_resource} cannot be written: Nominee serves built-in kinds only"
    return StatusError(405, "MethodNotAllowed", problem)


class StatusStrategy(Strategy):
    """PUT of `status`: everything but status and metadata stays."""

    def __init__(self, kind: Kind[Any], *, resets: tuple[str, ...] = ("spec",)) -> None:
        super().__init__(kind)
        self._resets = resets

    def warnings(self, new: Any, old: Any | None) -> Sequence[str]:
        return ()

    def prepare_for_update(self, new: Any, old: Any, env: Environment) -> None:
        for name in self._resets:
            keep(new, old, name)
        self.drop_disabled(new, old, env)


def keep_metadata(new: Any, old: Any) -> None:
    """Put back what only an update of the object itself may change (upstream: ResetObjectMetaForStatus)."""
    for name in ("labels", "annotations", "finalizers", "ownerReferences"):
        keep(new.metadata, old.metadata, name)
    new.metadata.selfLink = old.metadata.selfLink
    new.metadata.ClearField("deletionTimestamp")
    if old.metadata.HasField("deletionTimestamp"):
        new.metadata.deletionTimestamp.CopyFrom(old.metadata.deletionTimestamp)


def keep(new: Any, old: Any, name: str) -> None:
    """Sets a sub-message, list or map field of `new` to what `old` has."""
    new.ClearField(name)
    value = getattr(old, name)
    target = getattr(new, name)
    if hasattr(target, "CopyFrom"):
        if old.HasField(name):
            target.CopyFrom(value)
    else:
        target.MergeFrom(value)
