"""The rules of a kind, as functions of objects: a strategy's decisions, and their defaults.

The order in which the registry asks is upstream's (kube-apiserver 1.36, registry/rest: create.go, update.go).
A strategy has no I/O: time, gates, version and user come in with the `Environment`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from google.protobuf.message import Message

from nominee.apiserver.objects.user import ADMIN, User
from nominee.apiserver.validation import names
from nominee.apiserver.validation.equality import same
from nominee.apiserver.validation.objects import metadata
from nominee.machinery.api.errors import Cause, StatusError
from nominee.machinery.api.kinds import AnyKind, Kind
from nominee.machinery.api.objects import metadata_of
from nominee.machinery.api.pb import meta
from nominee.machinery.features.gates import Gates, Version

M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True)
class Environment:
    """The inputs of a rule besides the objects; `now` is cut to whole seconds."""

    gates: Gates
    now: meta.Time
    user: User = ADMIN
    nominates_deferred_resizes: bool = False
    """A bound pod whose resize is deferred may have a nominatedNodeName (KEP-5836, Option 3)."""

    @property
    def version(self) -> Version:
        """Return the emulated version."""
        return self.gates.version


class Strategy(Generic[M]):
    """The rules that every kind has; a kind's own strategy overrides them.

    `kind` is the stored kind. `new` in `prepare_*` and `canonicalize` belongs to the caller and may be
    changed; `old` is shared and may not. For validation see also `nominee.apiserver.kinds.rules.Unvalidated`.
    """

    graceful: ClassVar[bool] = False
    """DELETE first marks the object and later removes it (pods)."""
    collects_garbage: ClassVar[bool] = True
    """Dependents of a deleted owner are orphaned or waited for by finalizers."""
    orphans_dependents: ClassVar[bool] = False
    """DELETE without a propagation policy orphans the dependents (DefaultGarbageCollectionPolicy)."""
    orphaning_warning: ClassVar[str] = ""
    """The warning about a DELETE without a propagation policy."""
    counts_generation: bool = False
    """metadata.generation starts at 1 and counts changes of the spec."""
    validates_metadata: ClassVar[bool] = True
    """Validation of the kind includes its metadata; otherwise the rules for all kinds are checked."""
    standard_finalizers: ClassVar[bool] = True
    """Finalizers without a domain must be Kubernetes' own."""
    expires: ClassVar[bool] = False
    """Objects are removed after `--event-ttl`."""
    reset_fields: tuple[str, ...] = ()
    """The fields that this endpoint does not change and its writers do not own (GetResetFields)."""

    def __init__(self, kind: Kind[M], subresources: Mapping[str, Strategy[M]] | None = None) -> None:
        self.kind = kind
        self.subresources: Mapping[str, Strategy[M]] = subresources or {}
        if "status" in self.subresources:
            self.reset_fields = ("status",)

    def name_rule(self, name: str) -> names.Problems:
        """Return the problems of a name, besides those of every path segment."""
        return names.dns_subdomain(name)

    # Create.

    def prepare_for_create(self, new: M, env: Environment) -> None:
        """Reset the fields that a client may not set, in place."""
        if self.counts_generation:
            metadata_of(new).generation = 1
        if "status" in self.subresources:
            new.ClearField("status")
        self.drop_disabled(new, None, env)

    def validate(self, new: M, env: Environment) -> list[Cause]:
        """Return the errors of a new object."""
        return self.validate_metadata(new)

    def validate_metadata(self, new: M) -> list[Cause]:
        """Return the errors of an object's metadata."""
        return metadata.object_meta(
            metadata_of(new),
            namespaced=self.kind.namespaced,
            name_rule=self.name_rule,
            standard=self.standard_finalizers,
        )

    # Update.

    def prepare_for_update(self, new: M, old: M, env: Environment) -> None:
        """Restore the fields that this endpoint does not change, in place."""
        if "status" in self.subresources:
            keep(new, old, "status")
        self.drop_disabled(new, old, env)
        if self.counts_generation and not same(_spec_of(new), _spec_of(old)):
            metadata_of(new).generation = metadata_of(old).generation + 1

    def validate_update(self, new: M, old: M, env: Environment) -> list[Cause]:
        """Return the errors of a changed object."""
        standard = self.standard_finalizers
        return metadata.object_meta_update(metadata_of(new), metadata_of(old), standard=standard)

    def canonicalize(self, new: M) -> None:
        """Normalize a valid object, in place."""

    def early_warnings(self, new: M) -> Sequence[str]:
        """Return warnings about a new object, valid or not, before it is prepared."""
        return ()

    def warnings(self, new: M, old: M | None) -> Sequence[str]:
        """Return warnings about a valid object; `old` is None on create."""
        return ()

    def drop_disabled(self, new: M, old: M | None, env: Environment) -> None:
        """Remove fields that this version or its gates do not know, unless `old` has them; in place."""

    # Delete.

    def undeletable(self, name: str) -> str:
        """Return why an object of this name may never be deleted, or ""."""
        return ""

    def check_graceful_delete(self, obj: M, options: meta.DeleteOptions) -> bool:
        """Set `options.gracePeriodSeconds`; return whether to mark the object first."""
        return False

    def deleted_by_update(self, new: M, old: M) -> bool:
        """Return whether this update removes the last finalizer of an object that is being deleted."""
        before = metadata_of(old)
        return (
            not metadata_of(new).finalizers
            and before.HasField("deletionTimestamp")
            and before.deletionGracePeriodSeconds == 0
        )


class ReadOnlyStrategy(Strategy[M]):
    """A kind that clients may read, and of which there are no objects."""

    def prepare_for_create(self, new: M, env: Environment) -> None:
        """Refuse. Raises: StatusError 405."""
        raise read_only(self.kind)


def read_only(kind: AnyKind) -> StatusError:
    """Return the 405 of a write."""
    problem = f"{kind.group_resource} cannot be written: Nominee serves built-in kinds only"
    return StatusError(405, "MethodNotAllowed", problem)


def no_change(_new: Message, _old: Message) -> Iterable[Cause]:
    """Find nothing wrong with a change."""
    return ()


class StatusStrategy(Strategy[M]):
    """PUT of `status`: everything but status and metadata stays; `change` checks (new, old).

    `reset_metadata`: its writers do not own the metadata.
    """

    reset_fields: tuple[str, ...] = ("spec",)
    """Of kinds whose status keeps more of the metadata, this too."""

    def __init__(
        self,
        kind: Kind[M],
        change: Callable[[M, M], Iterable[Cause]] = no_change,
        *,
        reset_metadata: bool = False,
    ) -> None:
        super().__init__(kind)
        self._change = change
        if reset_metadata:
            self.reset_fields = ("spec", "metadata")

    def validate_update(self, new: M, old: M, env: Environment) -> list[Cause]:
        """Check metadata and the change."""
        return [*super().validate_update(new, old, env), *self._change(new, old)]

    def prepare_for_update(self, new: M, old: M, env: Environment) -> None:
        """Put back the spec, in place."""
        keep(new, old, "spec")
        self.drop_disabled(new, old, env)


def keep_metadata(new: Message, old: Message) -> None:
    """Restore the metadata that only an update of the object itself may change (ResetObjectMetaForStatus)."""
    after, before = metadata_of(new), metadata_of(old)
    for name in ("labels", "annotations", "finalizers", "ownerReferences"):
        keep(after, before, name)
    after.selfLink = before.selfLink
    after.ClearField("deletionTimestamp")
    if before.HasField("deletionTimestamp"):
        after.deletionTimestamp.CopyFrom(before.deletionTimestamp)


def keep(new: Message, old: Message, name: str) -> None:
    """Set a sub-message, list or map field of `new` to the value in `old`."""
    new.ClearField(name)
    value = getattr(old, name)
    target = getattr(new, name)
    if hasattr(target, "CopyFrom"):
        if old.HasField(name):
            target.CopyFrom(value)
    else:
        target.MergeFrom(value)


def _spec_of(obj: Message) -> Message:
    spec: Message = getattr(obj, "spec")  # noqa: B009  # Message does not declare it
    return spec
